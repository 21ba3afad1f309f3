import math
from typing import Any

import pytest

from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.errors import InvalidCostError, InvalidPriceSheetError

SMALL = NodePrice(name="small", per_hour=1.0)
LARGE = NodePrice(name="large", per_hour=8.0, workers=4, accelerators="4 x T4", watts=600)


def test_a_type_is_found_by_its_name_or_as_the_only_one() -> None:
    sheet = PriceSheet((SMALL, LARGE))
    assert sheet.node("large") is LARGE
    assert PriceSheet((LARGE,)).node() is LARGE
    for name in (None, "huge"):
        with pytest.raises(InvalidPriceSheetError, match=r"one of \['small', 'large'\]"):
            sheet.node(name)


def test_nodes_are_those_of_the_sheet_where_it_says_their_size() -> None:
    assert [LARGE.nodes(workers, 9) for workers in (1, 4, 5, 8)] == [1, 1, 2, 2]
    assert SMALL.nodes(5, 3) == 3


def test_every_problem_of_a_type_is_named_at_once() -> None:
    with pytest.raises(InvalidPriceSheetError) as caught:
        NodePrice(
            name="",
            per_hour=math.nan,
            spot_per_hour=-1,
            workers=0,
            accelerators=7,  # type: ignore[arg-type]
            minimum_seconds="60",  # type: ignore[arg-type]
        )
    named = [problem.split(" ")[0] for problem in caught.value.problems]
    assert named == [
        "name", "accelerators", "workers", "per_hour", "spot_per_hour", "minimum_seconds",
    ]  # fmt: skip
    assert isinstance(caught.value, InvalidCostError)
    assert caught.value.__reduce__() == (InvalidPriceSheetError, (caught.value.problems,))


def test_every_problem_of_a_sheet_is_named_at_once() -> None:
    with pytest.raises(InvalidPriceSheetError) as caught:
        PriceSheet((SMALL, SMALL), currency="")
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidPriceSheetError, match="at least one type"):
        PriceSheet(())


@pytest.mark.parametrize("nodes", [(1,), NodePrice(name="a", per_hour=1.0), None, {"a": 1}])
def test_a_sheet_of_anything_else_than_types_is_refused(nodes: Any) -> None:
    with pytest.raises(InvalidPriceSheetError, match="must be a list of NodePrice"):
        PriceSheet(nodes)

import json
from pathlib import Path

import pytest

import raycosttune
from raycosttune.core.price_sheet import NodePrice
from raycosttune.errors import InvalidPriceSheetError
from raycosttune.results.price_sheet import read_price_sheet

GOOD = """
currency: EUR
nodes:
  p3.2xlarge:
    accelerators: 1 x V100
    workers: 1
    per_hour: 3.06
    spot_per_hour: 0.92
    interruptions_per_hour: 0.05
    granularity_seconds: 1
    minimum_seconds: 60
    watts: 450
  cheap: {per_hour: 1}
"""


def written(folder: Path, text: str, name: str = "prices.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_sheet_in_yaml_is_the_same_in_json(tmp_path: Path) -> None:
    sheet = read_price_sheet(written(tmp_path, GOOD))
    assert sheet.currency == "EUR"
    assert sheet.node("cheap") == NodePrice(name="cheap", per_hour=1.0)
    assert sheet.node("p3.2xlarge").spot_per_hour == 0.92
    nodes = {
        node.name: {k: v for k, v in vars(node).items() if k != "name"} for node in sheet.nodes
    }
    text = json.dumps({"currency": "EUR", "nodes": nodes})
    assert read_price_sheet(written(tmp_path, text, "prices.json")) == sheet
    assert raycosttune.read_price_sheet is read_price_sheet


def test_every_problem_is_named_at_once_with_its_place(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
currency: 7
region: eu
nodes:
  a: {per_hour: -1, workers: 0, prize: 3}
  b: {spot_per_hour: .nan}
  c: 5
  8: {per_hour: 1}
""",
    )
    with pytest.raises(InvalidPriceSheetError) as caught:
        read_price_sheet(path)
    places = sorted(problem.split(" ")[0].rstrip(":") for problem in caught.value.problems)
    assert places == [
        "currency", "nodes.8.name", "nodes.a.per_hour", "nodes.a.prize", "nodes.a.workers",
        "nodes.b.per_hour", "nodes.b.spot_per_hour", "nodes.c", "region",
    ]  # fmt: skip
    assert all(problem.endswith(f"@ {path}") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.yaml", "nodes: {a: {per_hour: 1}, a: {per_hour: 2}}", "each key once, got a twice"),
        ("a.json", '{"nodes": {"a": {}, "a": {}}}', "each key once, got a twice"),
        ("a.yaml", "nodes: [", "can't be read"),
        ("a.json", "{", "can't be read"),
        ("a.yaml", "", "an object with `nodes`"),
        ("a.yaml", "nodes: {}", "at least one type"),
        ("a.yaml", "nodes: [{name: a}]", "an object with `nodes`"),
        ("a.yaml", "!!python/object/apply:os.getcwd []", "can't be read"),
    ],
)
def test_what_is_no_sheet_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(InvalidPriceSheetError, match=why):
        read_price_sheet(written(tmp_path, text, name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidPriceSheetError, match=r"none\.yaml"):
        read_price_sheet(tmp_path / "none.yaml")


BOMB = "a: &a0 {k: 1, l: 2}\n" + "".join(
    f"b{k}: &a{k} {{{', '.join(f'{name}: *a{k - 1}' for name in 'abcdefghij')}}}\n"
    for k in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{BOMB}nodes: *a11", "at most 100,000 values"),
        ("nodes: &a {b: *a}", "at most 100,000 values"),
        ("nodes: {a: {per_hour: !!int ''}}", "can't be read"),
        ("nodes: {a: {per_hour: !!bool maybe}}", "can't be read"),
        ("nodes: {a: {per_hour: !!timestamp soon}}", "can't be read"),
        ("nodes: {a: {per_hour: !!python/object/apply:os.getcwd []}}", "can't be read"),
        ("", "must be an object with `nodes` by name, got None"),
    ],
)
def test_a_hostile_sheet_is_refused_soon(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidPriceSheetError, match=message):
        read_price_sheet(written(tmp_path, text))
    with pytest.raises(InvalidPriceSheetError, match="must be a file"):
        read_price_sheet(tmp_path)


def test_types_may_share_what_an_anchor_holds(tmp_path: Path) -> None:
    text = "nodes: {a: &a {per_hour: 1, workers: 2}, b: {<<: *a, per_hour: 3}}"
    sheet = read_price_sheet(written(tmp_path, text))
    assert (sheet.node("b").per_hour, sheet.node("b").workers) == (3, 2)

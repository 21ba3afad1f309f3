"""What is said where a sweep costs something else than its trials by themselves."""

from raycosttune.core.dollars import Dollars
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from tests.core.drive import amdahl, goal

SPACE = Space((1, 2), (64, 128))
SHEET = PriceSheet((NodePrice(name="a", per_hour=3.6, minimum_seconds=1e6),))


def told(cost: Dollars, trials: int) -> list[str]:
    session = Session(SPACE, goal(), cost=cost, clock=lambda: 0.0)
    for k, cell in enumerate(SPACE.cells[:trials]):
        session.adopt(amdahl(SPACE).record(goal(), cell, f"t{k}"))
    return [line for line in session.explain().splitlines() if "by itself" in line]


def test_a_sweep_that_is_billed_as_a_whole_says_what_its_trials_cost_by_themselves() -> None:
    held = Dollars(SHEET, billing="held")
    assert told(Dollars(SHEET), 2) == []
    assert told(held, 1) == []
    assert told(held, 2) == ["each by itself they cost 2e+03 USD; the sweep is billed as a whole"]

import pytest

from raycosttune.core.fresh import HOPEFUL, LOSSES
from tests.core.drive import goal
from tests.core.test_planner import FAST, JOB, SPACE, planner
from tests.core.told import vain


@pytest.mark.parametrize("share", [0.3, 0.8, 0.9, 1.0, 1.2])
def test_a_failure_costs_the_least_that_a_fresh_run_then_costs_less_than(share: float) -> None:
    records = [vain(JOB, cell, 12, f"t{k}") for k, cell in enumerate(SPACE.cells[:4])]
    made = planner(*records, limits=goal(deadline_seconds=share * FAST))
    fresh, outlook = made.fresh("{}"), made.outlook("{}")

    def costs(loss: float) -> float:
        return min(
            outlook.step(batch, penalty=loss * outlook.whole, seconds_left=outlook.limit)[0]
            for batch in outlook.batches
        )

    place = LOSSES.index(fresh.loss)
    assert fresh.costs.min() == costs(fresh.loss)
    has_hope = [costs(loss) < HOPEFUL * loss * outlook.whole for loss in LOSSES]
    assert not any(has_hope[:place])
    assert all(has_hope[place:]) or place == len(LOSSES) - 1

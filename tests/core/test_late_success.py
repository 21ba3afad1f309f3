"""What follows where the first run at the target was late."""

import pytest

from raycosttune.core.decision import Continue, Stop, StopCause
from raycosttune.core.going import Going
from raycosttune.core.planner import Planner
from raycosttune.core.space import Allocation
from tests.core.drive import goal
from tests.core.test_planner import FAST, JOB, SPACE, further, reached
from tests.core.told import begun, know


@pytest.mark.parametrize(("planned", "goes_on"), [(1000, True), (1, False)])
def test_a_run_past_its_deadline_goes_on_where_what_it_shows_pays(
    planned: int, goes_on: bool
) -> None:
    """Some cell is known to be in time, by a run that was late itself."""
    late, cell = reached(Allocation(1, 256)), Allocation(1, 128)
    limits = goal(deadline_seconds=2.0 * FAST, planned_runs=planned)
    run = begun(JOB, cell, 8)
    assert run.run_seconds > 2.0 * FAST
    known = know(SPACE, JOB, SPACE.cells, [late, run], limits=limits)
    assert known.incumbent is not None
    assert not known.is_delivered
    made = Planner(known, recipes=False, can_resize=False)
    decision = made.next_step(run, Going(1))
    if goes_on:
        assert decision == Continue()
    else:
        assert isinstance(decision, Stop)
        assert decision.cause is StopCause.DEADLINE


def test_while_no_run_was_in_time_further_ones_are_placed_to_be_it() -> None:
    late = reached(Allocation(1, 256))
    limits = goal(deadline_seconds=3.0 * FAST, planned_runs=1000)
    known = know(SPACE, JOB, SPACE.cells, [late], limits=limits)
    runs = further(Planner(known, recipes=False, can_resize=False), known)
    assert runs
    assert min(cell.workers for cell in runs) > 1
    freely = know(SPACE, JOB, SPACE.cells, [late], limits=goal(planned_runs=1000))
    runs = further(Planner(freely, recipes=False, can_resize=False), freely)
    assert {cell.workers for cell in runs} == {1}

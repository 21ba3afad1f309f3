import pytest

from raycosttune.core import stopping
from raycosttune.core.cost import WorkerHours
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.outlook import Outlook
from raycosttune.core.planner import Planner
from raycosttune.core.space import Space
from tests.core.drive import goal

SPACE = Space((1, 2), (64, 128))
CELL = SPACE.cells[0]


@pytest.mark.parametrize(("deadline", "is_asked"), [(200.0, False), (100.5, True)])
def test_a_run_that_the_bounds_show_in_time_needs_no_forecast(
    monkeypatch: pytest.MonkeyPatch, deadline: float, *, is_asked: bool
) -> None:
    done = [Report(k + 1.0, float(k == 9), 10.0) for k in range(10)]
    other = TrialRecord("done", CELL, {}, 0, done)
    half = [Report(k + 1.0, 0.0, 10.0) for k in range(5)]
    record = TrialRecord("live", CELL, {}, 1, half)
    known = Knowledge([other, record], SPACE, goal(deadline_seconds=deadline), WorkerHours())
    forecast = Planner(known, recipes=False, can_resize=False)
    asked: list[str | None] = []

    def outlook(recipe: str | None) -> Outlook:
        asked.append(recipe)
        return Outlook(known, recipe, can_resize=False)

    monkeypatch.setattr(forecast, "outlook", outlook)
    assert stopping._guard(known, record, Going(1, can_resize=False), forecast) is None
    assert bool(asked) is is_asked

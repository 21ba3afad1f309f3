import pytest

from raycosttune.core.audit import EPOCHS, TIME, audit
from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Space

SPACE = Space((1, 2), (32, 64))
GOAL = Goal(metric="accuracy", mode="max", target=0.9)


def trial(
    name: str, cell: tuple[int, int], seconds: float, epochs: int, lr: float | None
) -> TrialRecord:
    recipe: dict[str, object] = {} if lr is None else {"lr": lr}
    reports = [
        Report(float(k), 0.95 if k == epochs else 0.5, seconds) for k in range(1, epochs + 1)
    ]
    return TrialRecord(name, SPACE.allocation(*cell), recipe, 0, reports)


def known(*records: TrialRecord) -> Knowledge:
    return Knowledge(records, SPACE, GOAL, WorkerHours())


def test_nothing_measured_contradicts_nothing() -> None:
    times, epochs = audit(known())
    assert (times.name, times.breaks) == (TIME, ())
    assert (epochs.name, epochs.breaks) == (EPOCHS, ())


def test_what_agrees_is_no_break() -> None:
    times, epochs = audit(
        known(trial("a", (1, 32), 4.0, 10, None), trial("b", (2, 64), 2.0, 11, None))
    )
    assert times.breaks == epochs.breaks == ()
    assert times.slack == epochs.slack == pytest.approx(0.105, abs=0.001)


def test_workers_that_speed_up_beyond_their_number_break_the_first() -> None:
    times, _ = audit(known(trial("a", (1, 32), 8.0, 10, None), trial("b", (2, 32), 2.0, 10, None)))
    assert len(times.breaks) == 1
    assert times.breaks[0].startswith("2 workers, batch 32 took ")
    assert "of 1 worker, batch 32: " in times.breaks[0]
    assert times.slack > 0.5


def test_a_larger_batch_that_needs_fewer_epochs_breaks_the_second() -> None:
    records = [trial("a", (1, 32), 2.0, 20, None), trial("b", (1, 64), 2.0, 5, None)]
    _, epochs = audit(known(*records))
    assert epochs.breaks[0].startswith("the runs contradict each other by ")
    records = [trial("a", (1, 32), 2.0, 20, 0.1), trial("b", (1, 64), 2.0, 5, 0.1)]
    _, epochs = audit(known(*records))
    assert epochs.breaks[0].startswith("the runs with lr=0.1 contradict each other by ")
    assert epochs.breaks[0].endswith("over 2 batch sizes")

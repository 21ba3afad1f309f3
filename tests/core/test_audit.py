import pytest

from raycosttune.core.audit import EPOCHS, RECIPES, TIME, WORKERS, against, audit
from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Space

SPACE = Space((1, 2), (32, 64))
LRS = list(enumerate((0.1, 0.1, 0.2, 0.2)))
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
    times, epochs, *_ = audit(known())
    assert (times.name, times.breaks) == (TIME, ())
    assert (epochs.name, epochs.breaks) == (EPOCHS, ())


def test_what_agrees_is_no_break() -> None:
    times, epochs, *_ = audit(
        known(trial("a", (1, 32), 4.0, 10, None), trial("b", (2, 64), 2.0, 11, None))
    )
    assert times.breaks == epochs.breaks == ()
    assert times.slack == epochs.slack == pytest.approx(0.105, abs=0.001)


def test_workers_that_speed_up_beyond_their_number_break_the_first() -> None:
    times, *_ = audit(known(trial("a", (1, 32), 8.0, 10, None), trial("b", (2, 32), 2.0, 10, None)))
    assert len(times.breaks) == 1
    assert times.breaks[0].startswith("2 workers, batch 32 took ")
    assert "of 1 worker, batch 32: " in times.breaks[0]
    assert times.slack > 0.5


def test_a_larger_batch_that_needs_fewer_epochs_breaks_the_second() -> None:
    records = [trial("a", (1, 32), 2.0, 20, None), trial("b", (1, 64), 2.0, 12, None)]
    _, epochs, *_ = audit(known(*records))
    assert epochs.slack == pytest.approx(0.105, abs=0.001)
    (text,) = epochs.breaks
    assert text == (
        "the runs need fewer epochs as the batch grows, up to some batch: the bounds allow for "
        "that, and reach farther down"
    )


def test_runs_that_no_valley_explains_widen_the_slack() -> None:
    records = [trial("a", (1, 32), 2.0, 20, None), trial("b", (1, 64), 2.0, 5, None)]
    _, epochs, *_ = audit(known(*records))
    assert epochs.breaks[1].startswith("the runs contradict each other by ")
    records = [trial("a", (1, 32), 2.0, 20, 0.1), trial("b", (1, 64), 2.0, 5, 0.1)]
    _, epochs, *_ = audit(known(*records))
    assert epochs.breaks[1].startswith("the runs with lr=0.1 contradict each other by ")
    assert epochs.breaks[1].endswith("over 2 batch sizes")
    assert epochs.slack > 0.5


def test_epochs_that_hang_on_the_workers_break_the_third() -> None:
    alike = trial("a", (1, 32), 2.0, 10, None), trial("b", (2, 32), 1.5, 10, None)
    assert audit(known(*alike))[2].breaks == ()
    apart = trial("a", (1, 32), 2.0, 10, None), trial("b", (2, 32), 1.5, 20, None)
    found = audit(known(*apart))[2]
    assert found.name == WORKERS
    (text,) = found.breaks
    assert text == "the runs at batch 32 need more than 19 epochs on 2 workers, 10 on 1 worker"
    assert found.slack > 0.5  # the bounds lie between what the runs show


def test_a_trial_without_a_report_speaks_against_nothing() -> None:
    silent = TrialRecord("c", SPACE.allocation(2, 32), {}, 2)
    found = audit(known(trial("a", (1, 32), 2.0, 10, None), silent))
    assert not any(each.breaks for each in found)


def test_recipes_whose_factor_hangs_on_the_batch_break_the_fourth() -> None:
    best = trial("a", (1, 32), 2.0, 10, 0.1), trial("b", (1, 64), 1.9, 12, 0.1)
    alike = trial("c", (1, 32), 2.0, 20, 0.2), trial("d", (1, 64), 1.9, 24, 0.2)
    assert audit(known(*best, *alike))[3].breaks == ()
    apart = trial("c", (1, 32), 2.0, 20, 0.2), trial("d", (1, 64), 1.9, 36, 0.2)
    found = audit(known(*best, *apart))[3]
    assert found.name == RECIPES
    (text,) = found.breaks
    assert text == (
        "the runs with lr=0.2 need at least 2.92 times the epochs of the best at one batch, at "
        "most 2.22 times at another"
    )


def test_what_speaks_against_an_assumption_is_one_line_each() -> None:
    runs = [trial(f"{k}", (1, 32 * (1 + k % 2)), 2.0, (20, 5)[k % 2], lr) for k, lr in LRS]
    lines = against(known(*runs))
    assert len(lines) == 1
    assert lines[0].startswith("against an assumption (Epochs to the target do not fall as ")
    assert lines[0].endswith(", and 3 more")
    assert against(known()) == []

import math

import pytest

from raycosttune.core.going import Going, fewer_workers, going
from raycosttune.core.observation import Report, Resized, TrialRecord
from raycosttune.core.space import Allocation, Space

SPACE = Space((1, 2, 4), (64,))


def trial(*reports: Report, resized: Resized | None = None) -> TrialRecord:
    return TrialRecord("t", Allocation(1, 64), {}, 0, list(reports), resized=resized)


SAVED = Report(1.0, 0.0, 10.0, checkpoint="c", workers=1)
UNSAVED = Report(2.0, 0.0, 10.0, workers=1)


def test_a_run_may_have_its_own_and_the_free_workers() -> None:
    goes = going(trial(SAVED), SPACE, free_workers=1, can_resize=True)
    assert [n in goes for n in (1, 2, 4)] == [True, True, False]
    assert goes == Going(1, most=2.0)
    free = going(trial(SAVED), SPACE, free_workers=None, can_resize=True)
    assert free.most == math.inf
    assert 4 in free


@pytest.mark.parametrize(
    ("record", "can_resize"),
    [(trial(SAVED), False), (trial(UNSAVED), True), (trial(), True)],
    ids=["forbidden", "no checkpoint", "no report"],
)
def test_a_run_that_can_not_go_on_elsewhere_stays(record: TrialRecord, can_resize: bool) -> None:
    goes = going(record, SPACE, free_workers=None, can_resize=can_resize)
    assert [n in goes for n in (1, 2, 4)] == [True, False, False]


def test_a_loop_that_does_not_read_its_checkpoint_is_never_moved() -> None:
    again = Report(1.0, 0.0, 10.0, attempt=2, checkpoint="c")
    goes = going(trial(SAVED, UNSAVED, again), SPACE, free_workers=None, can_resize=True)
    assert not goes.can_resize
    before_any = Report(1.0, 0.0, 10.0)
    goes = going(trial(before_any, again), SPACE, free_workers=None, can_resize=True)
    assert goes.can_resize


def test_what_follows_the_last_checkpoint_would_be_repeated() -> None:
    goes = going(trial(SAVED, UNSAVED), SPACE, free_workers=None, can_resize=True)
    assert goes.lost_epochs == 1.0
    goes = going(trial(UNSAVED, SAVED), SPACE, free_workers=None, can_resize=True)
    assert goes.lost_epochs == 0.0


def test_the_promised_workers_count_at_once() -> None:
    record = trial(SAVED, resized=Resized(4, 1))
    goes = going(record, SPACE, free_workers=0, can_resize=True)
    assert (goes.workers, goes.changes) == (4, 0)
    record.reports.append(Report(2.0, 0.0, 5.0, attempt=2, checkpoint="c", workers=4))
    goes = going(record, SPACE, free_workers=0, can_resize=True)
    assert (goes.workers, goes.changes) == (4, 1)


def test_a_run_goes_on_with_the_most_workers_left_where_it_has_saved_something() -> None:
    assert fewer_workers(trial(SAVED), SPACE) == 4
    assert fewer_workers(trial(UNSAVED), SPACE) is None
    assert fewer_workers(trial(SAVED), Space((2,), (32,))) is None

"""What happens in a sweep, a line each."""

from collections.abc import Iterator

from raycosttune.core.decision import FOUND
from raycosttune.core.figure import counted, whole
from raycosttune.core.held import paid, present
from raycosttune.core.observation import TrialRecord
from raycosttune.core.plan import Plan
from raycosttune.core.session import Session
from raycosttune.report.text import plain
from raycosttune.results.replay import why_started


class Lines:
    """Tells what has happened since it was last asked.

    Args:
        reports: Whether to tell each report, too.
    """

    def __init__(self, *, reports: bool = False) -> None:
        self._seen = 0
        self._live: dict[str, int] = {}
        self._told: dict[str, int] | None = {} if reports else None
        self._plan = ""

    def __call__(self, session: Session) -> list[str]:
        """Returns a line for each start, each end, each change of workers, and each new best."""
        return list(self._news(session))

    def _news(self, session: Session) -> Iterator[str]:
        records = list(session.records.values())
        for record in records[self._seen :]:
            yield _begun(session, record)
            self._live[record.trial_id] = record.allocation.workers
        self._seen = len(records)
        for trial_id, before in list(self._live.items()):
            record = session.records[trial_id]
            workers = present(record, session.space).workers
            if workers != before:
                name = plain(trial_id, 60)
                went = f"{name} goes on with {counted(workers, 'worker')} instead of {before}"
                yield f"{went}{_moved(record, workers)}"
                self._live[trial_id] = workers
            yield from self._reports(session, record)
            if not record.is_live:
                del self._live[trial_id]
                yield _ended(session, record)
        plan = session.plan()
        if isinstance(plan, Plan):
            cell = plan.allocation
            what = plain(cell.named(plan.recipe))
            if what != self._plan:
                self._plan = what
                cost = f"{plan.predicted_cost.mid:.3g} {plain(plan.unit, 40)} a run"
                yield f"best so far: {what}: {cost}"

    def _reports(self, session: Session, record: TrialRecord) -> Iterator[str]:
        if self._told is None:
            return
        seen = self._told.get(record.trial_id, 0)
        self._told[record.trial_id] = len(record.reports)
        name, metric = plain(record.trial_id, 60), plain(session.goal.metric or "metric", 40)
        for report in record.reports[seen:]:
            value = "no value" if report.value is None else f"{report.value:.4g}"
            took = f"in {whole(report.seconds)} s"
            yield f"{name}: {counted(report.epoch, 'epoch')}, {metric} {value}, {took}"


def _begun(session: Session, record: TrialRecord) -> str:
    cell, why = record.allocation, why_started(session, record.trial_id)
    because = "" if why in ("", FOUND) else f", which {why}"
    what = cell.named(record.recipe)
    return f"{plain(record.trial_id, 60)} starts: {plain(what)}{plain(because)}"


def _moved(record: TrialRecord, workers: int) -> str:
    change = record.resized
    is_told = change is not None and change.workers == workers and change.reason
    return f": {plain(change.reason)}" if change is not None and is_told else ""


def _ended(session: Session, record: TrialRecord) -> str:
    ended = record.ended
    why = "" if ended is None else ended.reason or ended.cause.value
    cost = paid(record, session.space, session.cost)
    return (
        f"{plain(record.trial_id, 60)} ended after {counted(record.epoch, 'epoch')} and "
        f"{cost:.3g} {plain(session.cost.unit, 40)}: {plain(why)}"
    )

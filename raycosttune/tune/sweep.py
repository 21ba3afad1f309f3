"""A sweep under way: Tune's trials on one side, the session and its journal on the other."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from raycosttune.core.decision import Continue, Decision, Finished, Resize, Stop
from raycosttune.core.held import present
from raycosttune.core.node_type import Free
from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.session import Session
from raycosttune.tune.convert import Config, ParamSpace, merged
from raycosttune.tune.domain import space_state
from raycosttune.tune.ending import CUT, HALTED, UNRUN, ending, failure, returned, without_metric
from raycosttune.tune.ledger import Ledger
from raycosttune.tune.notice import Notices
from raycosttune.tune.profile import holds
from raycosttune.tune.profile_run import read_result, without_profile
from raycosttune.tune.result import TRAINING_ITERATION, ResultReader, reported_names

logger = logging.getLogger(__name__)


class Sweep:
    """Tells a session and its journal what Tune's trials do.

    Every trial id here is Tune's. A trial that Tune has forgotten (its snapshots are up to
    ten seconds old) is handed out again under a new id; both then mean the same record.

    Attributes:
        session: The session; replaced when the cluster turns out smaller.
        params: The search space.
        aliases: New ids of forgotten trials, and the ids of their records.
        configs: The config that each trial got, by the id of its record.
        is_restored: Whether Tune goes on with an experiment that was broken off.
        is_idle: Whether a run of Tune's has begun and has got no trial yet.
    """

    def __init__(self, session: Session, params: ParamSpace, *, is_restored: bool = False) -> None:
        """Begins with what the session knows."""
        self.session = session
        self.params = params
        self.aliases: dict[str, str] = {}
        self.configs: dict[str, Config] = {}
        self.is_restored = is_restored
        self.is_idle = False
        self._ledger = Ledger({"space": space_state(params)})
        self._reader = ResultReader(self._ledger.request_age)
        self._errors: dict[str, str] = {}
        self._is_cut: dict[str, bool] = {}
        self._late: dict[str, Stop] = {}
        self._notices = Notices(logger)

    def record(self, trial_id: str) -> TrialRecord | None:
        """Returns the record of one of Tune's trials, None where it isn't ours."""
        return self.session.records.get(self.aliases.get(trial_id, trial_id))

    def known(self, trial_id: str) -> TrialRecord | ProfileRecord | None:
        """Returns the record of one of Tune's trials, that of a profile too."""
        record_id = self.aliases.get(trial_id, trial_id)
        return self.session.records.get(record_id) or self.session.profiles.get(record_id)

    def lost_trial(self) -> str | None:
        """Returns a trial that the journal knows and Tune has forgotten, if there is one.

        A profile that has ended is none: nothing of it is to be run or listed.
        """
        if not self.is_restored or self._ledger.experiment is None:
            return None
        profiles = [record.trial_id for record in self.session.live_profiles]
        trials = [*self.session.records, *profiles]
        return next((trial for trial in trials if trial not in self.configs), None)

    def start(self, trial_id: str, record_id: str) -> None:
        """Notes that Tune is given a trial: a new one, or a forgotten one under a new id."""
        self.is_idle = False
        if trial_id != record_id:
            self.aliases[trial_id] = record_id
            self._ledger.renamed(trial_id, record_id)
        else:
            self._ledger.asked(self.session, record_id)
        if (record := self.known(trial_id)) is not None:
            self._reader.begin(record, time.monotonic())

    def say_end(self, end: Finished) -> None:
        """Logs why the search ends, loudly where it was used up before Tune's run."""
        self._ledger.over(self.session, end.why)
        self._notices.end(end, trials=len(self.session.records) if self.is_idle else 0)

    def add(self, trial_id: str, config: Config, experiment: Path) -> None:
        """Takes in a trial that Tune has queued: a new one, a restored one, or a retry."""
        self.aliases |= self._ledger.open(
            experiment,
            self.session,
            trial_id=trial_id,
            is_restored=self.is_restored,
            is_ours=lambda record: holds(self.params, record),
        )
        record = self.known(trial_id)
        if record is None:
            return
        is_again = record.trial_id in self.configs or (
            self.is_restored and trial_id not in self.aliases
        )
        self.configs[record.trial_id] = without_profile(config)
        if is_again and record.is_live:
            self._fill(trial_id, record)
            self._reader.begin(record, time.monotonic())

    def settle(self, trial_id: str, result: Mapping[str, Any], *, is_error: bool) -> None:
        """Ends a restored trial that Tune knows to be over and no journal does."""
        record = self.known(trial_id)
        if record is None or not record.is_live:
            return
        logger.warning("the end of %s is in no journal; Tune's last result is taken", trial_id)
        self._reader.forget(record.trial_id)
        self.observe(trial_id, {**result, "done": True})
        self._is_cut.pop(record.trial_id, None)  # what Tune saved doesn't tell who ended it
        self._reader.forget(record.trial_id)
        self.end(trial_id, is_error=is_error, has_run=True)

    def observe(
        self, trial_id: str, result: Mapping[str, Any], checkpoint: str | None = None
    ) -> None:
        """Tells the session a result of Tune's; never raises, and a repeat does nothing."""
        record = self._expected(trial_id)
        if record is None:
            return
        if self._ledger.experiment is None:
            self._notices.no_scheduler()
        try:
            if isinstance(record, ProfileRecord):
                self._observe_profile(record, result)
            else:
                self._observe(trial_id, record, result, checkpoint)
        except Exception:
            logger.exception("a result of %s can't be read: %r", trial_id, dict(result))
            if isinstance(record, ProfileRecord):
                return  # its end will tell what was paid
            attempt = record.reports[-1].attempt if record.reports else 1
            report = Report(record.epoch + 1, None, 0.0, attempt=attempt)
            self._ledger.tell(self.session, record.trial_id, report)

    def end(self, trial_id: str, *, is_error: bool, has_run: bool) -> None:
        """Tells the session that a trial ended, with what its own journal adds."""
        record = self._expected(trial_id)
        if record is None or not record.is_live:
            return
        self._fill(trial_id, record)
        seconds = self._reader.unpaid_seconds(record.trial_id, time.monotonic())
        reports = record.reports if isinstance(record, TrialRecord) else []
        if is_error:
            cause, reason = failure(self._errors.get(record.trial_id, "it failed"))
        else:
            is_silent = isinstance(record, TrialRecord) and not reports
            own = CUT if self._is_cut.get(record.trial_id) else returned(is_silent=is_silent)
            own = own if has_run else (HALTED if reports else UNRUN)
            cause, reason = ending(self._last_word(record.trial_id), own)
        if reports and all(report.value is None for report in reports):
            cause, reason = without_metric((cause, reason), *self._notices.told(record.trial_id))
        self._ledger.tell(self.session, record.trial_id, Ended(cause, reason, seconds))

    def decide(
        self, trial_id: str, *, free_workers: Free = None, can_resize: bool = False
    ) -> Decision:
        """Decides whether a trial runs on; one that isn't ours does. See Session.decide."""
        record = self.record(trial_id)
        if record is None:
            return Continue()
        known, free = record.trial_id, free_workers
        return self.session.decide(known, free_workers=free, can_resize=can_resize)

    def resize(self, trial_id: str, change: Resize) -> None:
        """Promises other workers to a trial, which pauses until it goes on with them."""
        if (record := self.record(trial_id)) is not None:
            told = Resized(change.workers, record.reports[-1].attempt, change.why)
            self._ledger.tell(self.session, record.trial_id, told)

    def go_on(self, trial_id: str) -> None:
        """Notes that a trial starts again on its new workers."""
        if (record := self.record(trial_id)) is not None:
            before = record.seconds
            self._fill(trial_id, record)
            self._reader.move(record, time.monotonic(), record.seconds - before)

    def config(self, trial_id: str, config: Config) -> Config | None:
        """Returns the config of a trial for the workers that it has now, None if it is that."""
        record = self.record(trial_id)
        if record is None or record.resized is None:
            return None
        cell = present(record, self.session.space)
        batch = self.session.space.user_batch(cell)
        changed = merged(config, self.params.config(cell.workers, batch, {}, cell.node_type))
        return None if changed == config else changed

    def overdue(self) -> dict[str, Stop]:
        """Returns the running trials that have passed a limit without a report, and why."""
        live, now = [record.trial_id for record in self.session.live], time.monotonic()
        self._late |= self.session.overdue({k: self._reader.unpaid_seconds(k, now) for k in live})
        return self._late

    def note_names(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Notes what a restored trial reported last: no journal has the names."""
        record = self.record(trial_id)
        if record is not None and reported_names(result):
            self._notices.names(record.trial_id, result, self.session.goal.metric or "")

    def note_error(self, trial_id: str, text: str) -> None:
        """Remembers why an attempt of a trial failed, and stops its clock."""
        record = self.known(trial_id)
        if record is not None:
            self._errors[record.trial_id] = text
            self._notices.failed(trial_id, text)
            self._reader.pause(record.trial_id, time.monotonic())

    def note_waiting(self, trial_id: str) -> None:
        """Notes that a trial waits for workers that others hold: nothing is paid for that."""
        record = self.known(trial_id)
        if record is not None:
            self._reader.wait(record.trial_id, time.monotonic())

    def note_removed(self, trial_id: str) -> None:
        """Notes that a trial ends before it ran: a restored one has held nothing since."""
        record = self.known(trial_id)
        if record is not None and self.is_restored:
            self._reader.forget(record.trial_id)

    def move_to(self, session: Session) -> None:
        """Goes on in another session, over what the cluster really holds; see move.fit."""
        session.load_state(self.session.state())
        session.num_samples = self.session.num_samples
        self.session = session

    def drop(self, trial_id: str, reason: str) -> None:
        """Ends a trial that can't run here."""
        if (record := self.known(trial_id)) is not None:
            self._ledger.tell(self.session, record.trial_id, Ended(EndCause.FAILED, reason))

    def _observe(
        self,
        trial_id: str,
        record: TrialRecord,
        result: Mapping[str, Any],
        checkpoint: str | None,
    ) -> None:
        known, metric = record.trial_id, self.session.goal.metric or ""
        if TRAINING_ITERATION not in result or self._reader.is_repeated(record, result):
            return
        if self._reader.missed(known, result):
            self._fill(trial_id, record)
        report = self._reader.read(known, result, metric, checkpoint, time.monotonic())
        workers = report.workers
        if workers is None and record.resized is not None:
            workers = present(record, self.session.space).workers
        report = replace(report, workers=workers, others=self.session.goal.others(result))
        if not self._ledger.tell(self.session, known, report) and record.is_live:
            self._reader.hold(known, report.seconds)
        if known == next(iter(self.session.records)):
            self._notices.at_once(trial_id, record.reports, self.session.goal)
        self._notices.read(trial_id, result, report, metric)
        self._notices.bounded(trial_id, report, self.session.goal)
        self._notices.names(known, result, metric)
        # A returned function's last result comes again; a new one that is the last is Tune's doing.
        self._is_cut[known] = bool(result.get("done"))

    def _observe_profile(self, record: ProfileRecord, result: Mapping[str, Any]) -> None:
        row, known, now = read_result(result), record.trial_id, time.monotonic()
        if row is None or not record.is_live:
            return
        unpaid = self._reader.unpaid_seconds(known, now)
        row["seconds"] += unpaid - self._reader.seconds_since(known, now)  # failed starts before
        self._ledger.tell_profile(self.session, known, row)

    def _expected(self, trial_id: str) -> TrialRecord | ProfileRecord | None:
        record = self.known(trial_id)
        if record is None:
            self._notices.unknown(trial_id)
        return record

    def _fill(self, trial_id: str, record: TrialRecord | ProfileRecord) -> None:
        """Tells the reports that a metered run wrote and Tune lost."""
        if isinstance(record, ProfileRecord):
            if (row := self._ledger.run_profile(trial_id)) is not None:
                self._ledger.tell_profile(self.session, record.trial_id, row)
            return
        goal = self.session.goal
        for report in self._ledger.run_reports(trial_id, goal.metric or "", goal):
            moved = self._reader.numbered(record.trial_id, report)
            if self._ledger.tell(self.session, record.trial_id, moved):
                logger.info(
                    "%s: epoch %g was lost on the way and is filled in", trial_id, moved.epoch
                )

    def _last_word(self, known: str) -> Decision:
        decision = self.session.decide(known, can_resize=False)
        return decision if isinstance(decision, Stop) else self._late.get(known, decision)

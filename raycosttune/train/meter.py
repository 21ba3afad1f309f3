"""Measures a run of Ray Train: what each report cost, start-up apart, restarts counted."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raycosttune.core.observation import Report
from raycosttune.core.value import read_number
from raycosttune.errors import InvalidStateError
from raycosttune.results.journal import Journal, kept_aside, read_journal
from raycosttune.results.replay import read_run_reports
from raycosttune.results.rows import Row, begun_row, requested_row, run_header_row, run_report_row
from raycosttune.train import keys

logger = logging.getLogger(__name__)


class Meter:
    """Measures a run from the request for its workers, and writes the run's own journal.

    A journal that can't be read is kept under another name; one that can't be written leaves
    its rows unwritten. The run is measured all the same.

    Args:
        trial_id: The trial.
        journal: File of the run's own journal; it also counts the starts of the trial.
        clock: Returns seconds that never fall.
        calendar: Returns seconds since 1970.
    """

    def __init__(
        self,
        trial_id: str,
        journal: Path,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self._trial_id = trial_id
        self._path = journal
        self._journal = Journal(journal)
        self._clock, self._calendar = clock, calendar
        self._attempt = 0
        self._index = 0
        self._epoch = 0.0
        self._safe_epoch = 0.0
        self._workers: int | None = None
        self._requested_at: float | None = None
        self._paid_until: float | None = None
        self._startup_seconds = 0.0

    def request(self, workers: int | None = None) -> None:
        """Notes that so many workers are asked for: a start of the run begins."""
        self._workers = workers
        now = self._clock()
        self._requested_at = now
        if self._paid_until is None:
            self._paid_until = now
            self._look_back()
            self._journal.append(requested_row(self._trial_id, self._calendar()))
        self._attempt += 1
        self._epoch = self._safe_epoch

    def begin_training(self) -> None:
        """Notes that the workers enter the training function."""
        now = self._clock()
        self._startup_seconds = now - (now if self._requested_at is None else self._requested_at)
        self._journal.append(begun_row(self._trial_id))

    def report(self, metrics: Mapping[str, Any], checkpoint: str | None) -> dict[str, Any]:
        """Measures one report and writes it down.

        Args:
            metrics: What rank 0 reported.
            checkpoint: Where the checkpoint lies, None where none was reported.

        Returns:
            What to add to the metrics: the measured values, and the epoch where none was
            reported (then it counts reports since the last checkpointed one).
        """
        now = self._clock()
        reported = read_number(metrics.get("epoch"))
        self._epoch = self._epoch + 1 if reported is None else reported
        if checkpoint is not None:
            self._safe_epoch = self._epoch
        self._index += 1
        report = Report(
            epoch=self._epoch,
            value=None,
            seconds=now - (now if self._paid_until is None else self._paid_until),
            startup_seconds=self._startup_seconds,
            attempt=self._attempt,
            checkpoint=checkpoint,
            workers=self._workers,
            noise_scale=read_number(metrics.get(keys.NOISE_SCALE)),
        )
        self._paid_until, self._startup_seconds = now, 0.0
        self._journal.append(run_report_row(self._trial_id, report, metrics))
        return {
            keys.SECONDS: report.seconds,
            keys.STARTUP_SECONDS: report.startup_seconds,
            keys.ATTEMPT: report.attempt,
            **({} if self._workers is None else {keys.WORKERS: self._workers}),
            keys.INDEX: self._index,
            "epoch": metrics.get("epoch", self._epoch),
        }

    def _look_back(self) -> None:
        """Reads how often the trial has started, and how far its last checkpoint was."""
        rows = self._read()
        if not rows:
            self._journal.append(run_header_row(self._trial_id))
        for report in read_run_reports(rows, ""):
            self._attempt = max(self._attempt, report.attempt)
            if report.checkpoint is not None:
                self._safe_epoch = report.epoch

    def _read(self) -> list[Row]:
        try:
            return read_journal(self._path)
        except (InvalidStateError, OSError) as error:
            logger.warning(
                "the run's own journal can't be read (%s). It is kept as %s; the starts of %s "
                "are counted anew.",
                error,
                kept_aside(self._path),
                self._trial_id,
            )
            return []

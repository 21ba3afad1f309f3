"""Warnings about results that are not what a sweep needs, and hints at what went wrong."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from raycosttune.core.decision import Finished
from raycosttune.core.figure import counted
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.core.value import read_amount
from raycosttune.train import keys
from raycosttune.tune.meant import meant, perhaps
from raycosttune.tune.once import Once
from raycosttune.tune.result import reported_names

logger = logging.getLogger(__name__)
Result = Mapping[str, Any]
MOST_NAMES = 8
EPOCH = "Report the passes over the data done so far, counted from 1; within one 0.5, 1.5."
# What Ray says where a Ray Train loop runs as a function of Tune's.
TRAIN_IN_TUNE = re.compile(r"ray\.train\.\w+` is deprecated when running in a function\s+passed to")
SILENT = (
    "without a report: a loop in torch_trainable calls ray.train.report, "
    "a function in function_trainable ray.tune.report"
)
WRAP_TRAIN = "a Ray Train loop must be wrapped: pass torch_trainable(train_loop)"


class Notices:
    """Warns of results that will mislead the search, each kind once a sweep."""

    def __init__(self, logger: logging.Logger) -> None:
        """Has warned of nothing yet."""
        self._once = Once(logger)
        self._epochs: dict[str, tuple[int, float]] = {}
        self._told: dict[str, tuple[str, str]] = {}

    def no_scheduler(self) -> None:
        """Warns that nothing stops the trials."""
        self._once.warning(
            "scheduler",
            "the sweep has no CostAwareScheduler: no trial is stopped at the target, and no "
            "journal is kept. Pass scheduler=CostAwareScheduler().",
        )

    def end(self, end: Finished, trials: int) -> None:
        """Says why the search ends; loudly where it failed, or had run trials before Tune's run."""
        if trials:
            self._once.warning(
                "end",
                "this run gets no trial: its search has already run %s, and %s. Make a "
                "new CostAwareSearch for another sweep.",
                counted(trials, "trial"),
                end.why,
            )
        else:
            level = logging.WARNING if end.is_failure else logging.INFO
            logger.log(level, "the search ends: %s", end.why)

    def unknown(self, trial_id: str) -> None:
        """Warns of a trial that another searcher has made."""
        self._once.warning(
            "unknown",
            "the trial %s was not suggested by this search; it and others like it run "
            "without being counted.",
            trial_id,
        )

    def failed(self, trial_id: str, error: str) -> None:
        """Says what is to be done about an error, where that is known."""
        if hint := hint_at(error):
            self._once.warning("failed", "%s failed: %s.", trial_id, hint)

    def read(self, trial_id: str, result: Result, report: Report, metric: str) -> None:
        """Warns of what is odd about a result, after it was read as a report."""
        self._wrapper(trial_id, result)
        self._epoch(trial_id, result, report)
        if keys.SECONDS in result and report.checkpoint is None:
            self._once.warning(
                "checkpoint",
                "the training loop reports no checkpoint: a restarted trial begins at zero, "
                "and the plan has no model to load. Pass checkpoint= to ray.train.report.",
            )
        if report.value is None:
            self._once.warning(
                "metric",
                "%s reports no finite number as %r, got %r: there it is never at the target. "
                "It reported: %s%s.",
                trial_id,
                metric,
                result.get(metric),
                ", ".join(reported_names(result)) or "nothing",
                perhaps(meant(result, metric)),
            )

    def names(self, record_id: str, result: Result, metric: str) -> None:
        """Keeps what a trial reports in place of the metric, and what of it is likely meant."""
        self._told[record_id] = told_instead(result, metric), meant(result, metric)

    def told(self, record_id: str) -> tuple[str, str]:
        """Returns what `names` has kept of a trial, empty texts where that is nothing."""
        return self._told.get(record_id, ("", ""))

    def bounded(self, trial_id: str, report: Report, goal: Goal) -> None:
        """Warns of a bounded metric that is missing: the run is never at the target."""
        missing = {bound.metric for bound in goal.bounds} - dict(report.others).keys()
        if missing:
            self._once.warning(
                "bounded",
                "%s reports no finite number as %s, which the goal bounds: it can't be at the "
                "target.",
                trial_id,
                ", ".join(sorted(map(repr, missing))),
            )

    def at_once(self, trial_id: str, reports: Sequence[Report], goal: Goal) -> None:
        """Warns where the first report of a sweep's first trial is at the target already."""
        if len(reports) == 1 and goal.is_met(reports[0]):
            self._once.warning(
                "at once",
                "the first report of %s is at the target already (%s %.4g, %s): is the mode "
                "right, is the target too easy?",
                trial_id,
                goal.metric,
                reports[0].value,
                goal.wanted,
            )

    def _wrapper(self, trial_id: str, result: Result) -> None:
        if keys.SECONDS not in result and keys.ITERATION_SECONDS not in result:
            self._once.warning(
                "wrapper",
                "the training function of %s is not wrapped: Tune reserves one CPU for it "
                "whatever its worker count, and times it roughly. Pass "
                "function_trainable(train), or torch_trainable(train_loop) for a Ray Train loop.",
                trial_id,
            )

    def _epoch(self, trial_id: str, result: Result, report: Report) -> None:
        told, before = result.get("epoch"), self._epochs.get(trial_id)
        self._epochs[trial_id] = report.attempt, report.epoch
        problem = ""
        if read_amount(told) is None:
            what = f"{told!r} as its epoch" if "epoch" in result else "no epoch"
            problem = f"{what}: its reports are counted instead, one epoch each"
        elif before is None and report.attempt == 1 and report.epoch <= 0:
            problem = f"epoch {told} first: each epoch is counted one too few"
        elif before is not None and before[0] == report.attempt and report.epoch == before[1]:
            problem = f"epoch {told} again: of reports of one epoch only the first counts"
        elif before is not None and before[0] == report.attempt and report.epoch < before[1]:
            problem = f"epoch {told} after {before[1]:g}: costs and epochs come out wrong"
        if problem:
            self._once.warning("epoch", "%s reports %s. %s", trial_id, problem, EPOCH)


def told_instead(result: Result, metric: str) -> str:
    """Lists what was reported in place of a finite metric: acc, epoch."""
    names = reported_names(result)
    shown = [f"{n} = {result[n]!r:.40}" if n == metric else n for n in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") or "nothing"


def hint_at(error: str) -> str:
    """Says what is to be done about an error that a wrong wrapper has caused, or nothing."""
    return WRAP_TRAIN if TRAIN_IN_TUNE.search(error) else ""

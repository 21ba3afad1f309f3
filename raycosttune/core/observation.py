"""What is learned of a trial while it runs and when it ends."""

import json
import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import assert_never

from raycosttune.core.space import Allocation
from raycosttune.core.value import clean_amount, read_number

Scalar = bool | int | float | str | None
Recipe = dict[str, object]


def recipe_key(recipe: Recipe) -> str:
    """Returns a recipe's canonical text, by which equal recipes are known."""
    return json.dumps(recipe, sort_keys=True, default=str)


class EndCause(StrEnum):
    """Why a trial ended; MISNAMED: without the metric, but with one of nearly its name."""

    REACHED = "reached"
    STOPPED = "stopped"
    FINISHED = "finished"
    MISNAMED = "misnamed"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"


@dataclass(frozen=True)
class Report:
    """Is one evaluation of a running trial.

    Attributes:
        epoch: Passes over the data done by the trial, counted from 1.
        value: The goal's metric, None when it was missing or not a number.
        seconds: Wall time paid since this trial's previous report, or since its
            workers were asked for; start-up included.
        startup_seconds: The part of `seconds` before the first step of an attempt.
        attempt: Start number of the trial, from 1: a restart begins a new attempt.
        checkpoint: Where the state of this epoch lies, or None.
        workers: Workers that were held since the previous report, None for the trial's own.
        noise_scale: Gradient noise scale in samples as measured so far, or None.
        others: Names and values of the other metrics that the goal bounds.
    """

    epoch: float
    value: float | None
    seconds: float
    startup_seconds: float = 0.0
    attempt: int = 1
    checkpoint: str | None = None
    workers: int | None = None
    noise_scale: float | None = None
    others: tuple[tuple[str, float], ...] = ()

    @property
    def training_seconds(self) -> float:
        """The part of `seconds` after the start-up."""
        return max(self.seconds - self.startup_seconds, 0.0)

    def cleaned(self) -> "Report":
        """Returns the report without what is no number, so that it can't spoil a fit."""
        return replace(
            self,
            epoch=clean_amount(self.epoch),
            value=read_number(self.value),
            seconds=clean_amount(self.seconds),
            startup_seconds=clean_amount(self.startup_seconds),
            noise_scale=read_number(self.noise_scale),
        )


@dataclass(frozen=True)
class Ended:
    """Is the end of a trial.

    Attributes:
        cause: Why it ended.
        reason: One sentence for people.
        seconds: Wall time paid since the last report, or since its workers were asked for.
        is_starting: Whether its first workers had not begun to train, as far as that is known.
    """

    cause: EndCause
    reason: str = ""
    seconds: float = 0.0
    is_starting: bool = False

    def cleaned(self) -> "Ended":
        """Returns the end with no seconds where they are no number."""
        return replace(self, seconds=clean_amount(self.seconds))


@dataclass(frozen=True)
class Resized:
    """Is a change of a trial's workers, at the same global batch.

    Attributes:
        workers: Workers that it goes on with.
        attempt: Its last start on the workers before.
        reason: One sentence for people.
    """

    workers: int
    attempt: int
    reason: str = ""

    def cleaned(self) -> "Resized":
        """Returns itself: it was decided here, not measured."""
        return self


Observation = Report | Ended | Resized


@dataclass
class TrialRecord:
    """Is everything known of one trial, in the order in which it came.

    Attributes:
        trial_id: Tune's name of the trial.
        allocation: Its workers and batch.
        recipe: Its other hyperparameters as proposed (before any learning-rate rule).
        proposal: Number of the proposal that the recipe came from.
        reports: What it reported.
        ended: Its end, or None while it runs.
        started: Seconds of the sweep before it was asked for, None where they are not known.
        resized: The last change of its workers, or None.
    """

    trial_id: str
    allocation: Allocation
    recipe: Recipe
    proposal: int
    reports: list[Report] = field(default_factory=list)
    ended: Ended | None = None
    started: float | None = field(default=None, compare=False)
    resized: Resized | None = None

    @cached_property
    def key(self) -> str:
        """Key of its recipe, which never changes."""
        return recipe_key(self.recipe)

    @property
    def is_live(self) -> bool:
        """Whether the trial may still report."""
        return self.ended is None

    @property
    def seconds(self) -> float:
        """Wall time paid in all, restarts included."""
        paid = math.fsum(report.seconds for report in self.reports)
        return paid + (self.ended.seconds if self.ended else 0.0)

    @property
    def run(self) -> list[Report]:
        """The reports that led to the present state, across restarts that resumed."""
        start = 0
        for k, (before, after) in enumerate(zip(self.reports, self.reports[1:], strict=False), 1):
            if after.attempt != before.attempt and after.epoch <= self.reports[0].epoch:
                start = k
        return self.reports[start:]

    @property
    def run_seconds(self) -> float:
        """Wall time of the present run so far, from the request for workers."""
        return math.fsum(report.seconds for report in self.run)

    @property
    def epoch(self) -> float:
        """The last epoch that was reported, 0 before the first."""
        return self.reports[-1].epoch if self.reports else 0.0

    def take(self, observation: Observation) -> bool:
        """Takes in what the trial showed.

        Returns:
            Whether it was new: not so after the end, for a report of an attempt and epoch
            that is known, or for a change that is known or of an attempt that was left. Another
            change of the same attempt takes its place.
        """
        if not self.is_live:
            return False
        match observation:
            case Report():
                cleaned = observation.cleaned()
                seen = {(report.attempt, report.epoch) for report in self.reports}
                if (cleaned.attempt, cleaned.epoch) in seen:
                    return False
                self.reports.append(cleaned)
            case Ended():
                self.ended = observation.cleaned()
            case Resized():
                known = self.resized
                if known is not None and (
                    observation == known or observation.attempt < known.attempt
                ):
                    return False
                self.resized = observation
            case _:
                assert_never(observation)
        return True

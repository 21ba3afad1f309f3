"""Jobs whose epochs take longer or shorter with some recipes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Recipe, Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, jobs, spaces

FP32: Recipe = {"precision": "fp32", "factor": 1.0}
BF16: Recipe = {"precision": "bf16", "factor": 1.0}


@dataclass(frozen=True)
class PacedJob(Job):
    """Multiplies the epoch times of a job by the pace of a recipe's precision."""

    paces: Mapping[str, float] = field(default_factory=dict)

    def pace(self, recipe: Recipe) -> float:
        """Returns by how much a recipe's epochs take longer."""
        return self.paces.get(str(recipe.get("precision")), 1.0)

    def seconds(self, cell: Allocation, recipe: Recipe | None = None) -> float:
        """Returns the time to the target."""
        told = recipe or {}
        each = self.epoch_seconds[cell] * self.pace(told)
        return self.startup_seconds + each * self.needed(cell, told)

    def report(self, goal: Goal, cell: Allocation, recipe: Recipe, epoch: int) -> Report:
        """Returns what a run reports after an epoch."""
        told = super().report(goal, cell, recipe, epoch)
        seconds = told.training_seconds * self.pace(recipe) + told.startup_seconds
        return replace(told, seconds=seconds)

    def run(
        self, goal: Goal, cell: Allocation, recipe: Recipe, name: str, epochs: int | None = None
    ) -> TrialRecord:
        """Returns a whole run of a cell with a recipe, or its first epochs."""
        until = self.needed(cell, recipe) if epochs is None else epochs
        reports = [self.report(goal, cell, recipe, k) for k in range(1, until + 1)]
        is_whole = until >= self.needed(cell, recipe)
        end = Ended(EndCause.REACHED if is_whole else EndCause.STOPPED)
        return TrialRecord(name, cell, dict(recipe), 0, reports, end)


def paced(job: Job, **paces: float) -> PacedJob:
    """Returns a job with the paces of some precisions."""
    return PacedJob(job.epoch_seconds, job.epochs, job.startup_seconds, paces)


def declared(space: Space) -> Space:
    """Returns a space in which precision affects time."""
    return replace(space, affects_time=("precision",))


@st.composite
def paced_jobs(draw: st.DrawFn) -> tuple[Space, PacedJob]:
    """Draws a space that declares precision, and a job of the assumed shape in each class."""
    space = declared(draw(spaces()))
    return space, paced(draw(jobs(space)), fp32=1.0, bf16=draw(st.floats(0.2, 5)))

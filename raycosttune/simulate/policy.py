"""What a simulation drives: this package's session, or a peer behind the same calls."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from raycosttune.core.decision import Answer, Decision, Resize
from raycosttune.core.observation import Observation
from raycosttune.core.space import Allocation


@dataclass(frozen=True)
class Profile:
    """Starts workers once and times a few steps in several cells.

    Attributes:
        cells: What to time. The largest worker count is started; cells with fewer workers
            are timed on a part of them while the rest stands idle.
        steps: Steps timed in each cell.
        why: One sentence for people.
    """

    cells: tuple[Allocation, ...]
    steps: int = 10
    why: str = ""

    @property
    def held(self) -> Allocation:
        """The cell with the most workers, all of which are paid for."""
        return max(self.cells, key=lambda cell: (cell.workers, cell.nodes))


@dataclass(frozen=True)
class Profiled:
    """Is what a profile showed.

    Attributes:
        epoch_seconds: Seconds of an epoch by cell, as the steps imply them.
        seconds: Wall time paid, start-up included.
        startup_seconds: The part of `seconds` before the first step.
    """

    epoch_seconds: dict[Allocation, float]
    seconds: float
    startup_seconds: float


@runtime_checkable
class HasAllocation(Protocol):
    """Is a plan that names a cell."""

    @property
    def allocation(self) -> Allocation:
        """The chosen workers and batch."""


class Policy(Protocol):
    """Decides what a sweep runs. `raycosttune.core.session.Session` is one."""

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer | Profile:
        """Answers what a new trial shall do; a Profile only from a ProfilingPolicy."""

    def tell(self, trial_id: str, observation: Observation) -> object:
        """Takes in a report or an end."""

    def decide(self, trial_id: str) -> Decision | Resize:
        """Decides whether, and with how many workers, a trial goes on after its latest report."""

    def plan(self) -> object:
        """Returns an object with an `allocation`, or one without where nothing is chosen."""


@runtime_checkable
class ProfilingPolicy(Policy, Protocol):
    """Is a policy that may also ask for profiles."""

    def tell_profile(self, trial_id: str, profiled: Profiled) -> None:
        """Takes in what a profile showed."""

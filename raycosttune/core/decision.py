"""What the session answers: small unions, to be matched."""

from dataclasses import dataclass
from enum import StrEnum

from raycosttune.core.observation import Recipe
from raycosttune.core.profile import Profile
from raycosttune.core.space import Allocation

FOUND = "was found in the journal"  # in place of why a trial was started


@dataclass(frozen=True)
class Run:
    """Starts a training run.

    Attributes:
        allocation: Workers and batch.
        recipe: The other hyperparameters, the learning rate scaled to the batch.
        why: One sentence for people.
    """

    allocation: Allocation
    recipe: Recipe
    why: str


@dataclass(frozen=True)
class Wait:
    """Starts nothing now; something that runs must end first."""

    why: str


@dataclass(frozen=True)
class Finished:
    """Ends the sweep: no experiment pays for itself, or a limit is reached.

    Attributes:
        why: One sentence for people.
        is_failure: Whether it ends because something failed that should not have.
    """

    why: str
    is_failure: bool = False


Answer = Run | Profile | Wait | Finished


class StopCause(StrEnum):
    """Why a running trial is stopped."""

    REACHED = "reached"
    DEADLINE = "deadline"
    COST = "cost"
    EPOCHS = "epochs"
    BUDGET = "budget"


@dataclass(frozen=True)
class Continue:
    """Lets a trial run on."""


@dataclass(frozen=True)
class Stop:
    """Ends a trial."""

    cause: StopCause
    why: str


@dataclass(frozen=True)
class Resize:
    """Lets a trial go on from its last report with other workers.

    Attributes:
        workers: The new worker count, at the same global batch.
        why: One sentence for people.
    """

    workers: int
    why: str


Decision = Continue | Stop | Resize

"""What a simulated sweep did."""

from dataclasses import dataclass, field

from raycosttune.core.observation import EndCause
from raycosttune.core.space import Allocation


@dataclass
class SimulatedTrial:
    """Is one start of workers, for a run or a profile.

    Attributes:
        trial_id: Its name.
        allocation: What is held, or was last.
        started: Clock at the request for workers.
        seconds: For how long so far, resized parts included.
        paid: Cost of the parts before the last resize.
        held_seconds: How long the present workers have been held.
        reports: Evaluations made.
        resizes: How often its workers were changed.
        cause: Why it ended, None while it runs.
        is_profile: Whether it only timed steps.
    """

    trial_id: str
    allocation: Allocation
    started: float
    seconds: float = 0.0
    paid: float = 0.0
    held_seconds: float = 0.0
    reports: int = 0
    resizes: int = 0
    cause: EndCause | None = None
    is_profile: bool = False


@dataclass(frozen=True)
class Moment:
    """Is the state of a sweep after one of its trials ended.

    Attributes:
        spent: What all trials have cost, the running ones up to their last reports.
        chosen: The cell of the plan, or None.
        delivered: Whether a trial has reached the target by the deadline, so that one of the
            planned runs is done.
    """

    spent: float
    chosen: Allocation | None
    delivered: bool


@dataclass
class Outcome:
    """Is a simulated sweep.

    Attributes:
        trials: Every start of workers, in order.
        moments: The state after each end of a trial.
        seconds: Wall time of the sweep.
        why: Why nothing further started.
        plan: What the policy recommends at the end.
    """

    trials: list[SimulatedTrial] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    seconds: float = 0.0
    why: str = ""
    plan: object = None

    @property
    def last(self) -> Moment:
        """The state at the end."""
        return self.moments[-1] if self.moments else Moment(0.0, None, delivered=False)

"""What a simulation drives: this package's session, or a peer behind the same calls."""

from typing import Protocol, runtime_checkable

from raycosttune.core.decision import Answer, Decision
from raycosttune.core.node_type import Free
from raycosttune.core.observation import Observation
from raycosttune.core.profile import Profiled
from raycosttune.core.space import Allocation


@runtime_checkable
class HasAllocation(Protocol):
    """Is a plan that names a cell."""

    @property
    def allocation(self) -> Allocation:
        """The chosen workers and batch."""


class Policy(Protocol):
    """Decides what a sweep runs. `raycosttune.core.session.Session` is one."""

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """Answers what a new trial shall do; a Profile only from a ProfilingPolicy."""

    def tell(self, trial_id: str, observation: Observation) -> object:
        """Takes in a report or an end."""

    def decide(self, trial_id: str) -> Decision:
        """Decides whether, and with how many workers, a trial goes on after its latest report."""

    def plan(self) -> object:
        """Returns an object with an `allocation`, or one without where nothing is chosen."""


@runtime_checkable
class ProfilingPolicy(Policy, Protocol):
    """Is a policy that may also ask for profiles."""

    def tell_profile(self, trial_id: str, profiled: Profiled) -> object:
        """Takes in what a profile showed."""

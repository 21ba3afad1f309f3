"""What a sweep was told: its trials and profiles, and what they hold, cost and say."""

from collections import Counter
from collections.abc import Callable

from raycosttune.core.age import Age
from raycosttune.core.archive import Archive
from raycosttune.core.basis import Basis
from raycosttune.core.cost import CostMetric
from raycosttune.core.decision import FOUND
from raycosttune.core.goal import Goal
from raycosttune.core.held import present
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Observation, TrialRecord
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profiled, ProfileRecord
from raycosttune.core.space import Space


class Book:
    """Keeps the records of a sweep, and what they say until one of them changes.

    Args:
        space: The legal cells.
        goal: Target and limits, with metric and mode set.
        cost: What a run costs.
        clock: Returns seconds that never fall.
        prior: What an earlier sweep showed, if anything.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        clock: Callable[[], float],
        prior: Prior | None = None,
    ) -> None:
        self.space, self.goal, self.cost, self.prior = space, goal, cost, prior
        self._age = Age(clock)
        self._known: Knowledge | None = None
        self._spent: float | None = None
        self._settled: Basis | None = None
        self._is_settled = False
        self._open({}, {}, {})

    @property
    def known(self) -> Knowledge:
        """Everything that the records say."""
        if self._known is None:
            self._known = self._archive.known(self.records, tuple(self.profiles.values()))
        return self._known

    @property
    def settled(self) -> Basis | None:
        """What decisions to go on rest on, None where that is all that is known."""
        if not self._is_settled:
            self._settled = self._archive.settled(self.known)
            self._is_settled = True
        return self._settled

    @property
    def live(self) -> list[TrialRecord]:
        """The trials that may still report; profiles are in `live_profiles`."""
        return [trial.record for trial in self.known.live]

    @property
    def live_profiles(self) -> list[ProfileRecord]:
        """The profiles that have neither shown anything nor ended."""
        return [record for record in self.profiles.values() if record.is_live]

    @property
    def committed_workers(self) -> int:
        """Workers that running trials and profiles hold, as far as they have reported."""
        return self.committed_by_type.total()

    @property
    def committed_by_type(self) -> Counter[str]:
        """The same by type of machine."""
        held = [present(record, self.space) for record in self.live]
        held += [record.profile.held for record in self.live_profiles]
        found = Counter[str]()
        for cell in held:
            found[cell.node_type] += cell.workers
        return found

    @property
    def spent(self) -> float:
        """What all trials have cost up to their last reports, in the cost's unit."""
        if self._spent is None:
            self._spent = self._archive.spent(self.records, tuple(self.profiles.values()))
        return self._spent

    @property
    def elapsed_seconds(self) -> float:
        """Wall time of the sweep; time between a crash and a restore is not counted."""
        return self._age.seconds

    def advance(self, elapsed_seconds: float) -> None:
        """Counts at least so much of the sweep's deadline as passed, as a journal says."""
        self._age.reach(elapsed_seconds)

    def tell(self, trial_id: str, observation: Observation) -> bool:
        """Takes in what a trial showed, or the end of a profile that showed nothing.

        Returns:
            Whether it was new: not so for an unknown or ended trial, or a report of an
            attempt and epoch that is known.
        """
        record = self.records.get(trial_id) or self.profiles.get(trial_id)
        is_new = record is not None and record.take(observation)
        if is_new:
            if trial_id in self.profiles:
                self._archive.basis = None
            self._forget()
        return is_new

    def tell_profile(self, trial_id: str, profiled: Profiled) -> bool:
        """Takes in what a profile showed, which ends it; tells whether it was new."""
        record = self.profiles.get(trial_id)
        is_new = record is not None and record.show(profiled)
        if is_new:
            self._archive.basis = None
            self._forget()
        return is_new

    def adopt(self, record: TrialRecord, why: str = FOUND) -> None:
        """Takes in a trial that a journal knows and this session does not."""
        self.records.setdefault(record.trial_id, record)
        self._why.setdefault(record.trial_id, why)
        self._forget()

    def _open(
        self,
        records: dict[str, TrialRecord],
        profiles: dict[str, ProfileRecord],
        why: dict[str, str],
    ) -> None:
        """Begins with these records, and why each trial was started, by its id."""
        self.records, self.profiles, self._why = records, profiles, why
        self._archive = Archive(self.space, self.goal, self.cost, self.prior)
        self._forget()

    def _forget(self) -> None:
        """Has what the records say read anew."""
        self._known = self._spent = self._settled = None
        self._is_settled = False

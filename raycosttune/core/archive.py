"""What ended trials add up to, read once."""

import math
from collections.abc import Mapping, Sequence

from raycosttune.core.basis import FEWEST, Basis
from raycosttune.core.cost import CostMetric
from raycosttune.core.digest import Digest, Digests
from raycosttune.core.exact_sum import plus
from raycosttune.core.goal import Goal
from raycosttune.core.held import billed, is_additive, paid, paid_for, use_of, uses
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.prior import Prior
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.roll import Placed, Roll
from raycosttune.core.space import Space
from raycosttune.core.tally import Tally

Records = Mapping[str, TrialRecord]


class Archive:
    """Adds ended trials up once; those that run and the profiles, which are few, each time.

    Args:
        space: The legal cells.
        goal: Target and limits.
        cost: The cost metric.
        prior: What an earlier sweep showed, if anything.
    """

    def __init__(
        self, space: Space, goal: Goal, cost: CostMetric, prior: Prior | None = None
    ) -> None:
        self._space, self._goal, self._cost = space, goal, cost
        self._digests, self._ended, self._roll = Digests(goal), Tally(space, goal), Roll()
        self._prior = prior
        self._earlier = () if prior is None else prior.add_to(self._ended, space, goal)
        self._count = 0
        self.basis: Basis | None = None
        self._since = list[Digest]()
        self._paid: tuple[float, ...] = ()
        self._bills, self._due = Roll(), list[Placed]()

    def known(self, records: Records, profiles: Sequence[ProfileRecord]) -> Knowledge:
        """Returns what is known now; it stays as it is when more becomes known.

        Args:
            records: Every trial by its id, in the order of their start: those of the last
                call, and new ones after them.
            profiles: Every profile.
        """
        self._read(records)
        tally = self._ended.copy()
        for turn, record in self._roll.open:
            tally.add(self._digests(record), turn)
        for profile in profiles:
            tally.add_profile(profile)
        where = self._space, self._goal, self._cost
        own = tuple(records.values())
        return Knowledge(own, *where, self._digests, profiles, tally, self._earlier)

    def settled(self, known: Knowledge) -> Basis | None:
        """Returns what decisions rest on where that is not all that is known; see `Basis`.

        Args:
            known: What is known now.

        Raises:
            InvalidCostError: If the cost metric fails.
        """
        if self._count < FEWEST or self._space.affects_time:
            return None
        if self.basis is None or not self.basis.holds(known, self._count, self._since):
            if self.basis is not None and self.basis.ended == self._count:
                return None  # it is as new as one can be
            without = tuple(record.trial_id for _, record in self._roll.open)
            self.basis = self._basis(known, self._ended.copy(), self._count, without)
            if not self.basis.holds(known, self._count, ()):
                return None
        self._since.clear()
        return self.basis

    def settle(self, known: Knowledge, trials: int, without: Sequence[str]) -> None:
        """Rests decisions on what they rested on before a restore.

        Args:
            known: What is known now.
            trials: How many trials had begun.
            without: Those of them that had not ended, by name.
        """
        tally, count = Tally(self._space, self._goal), 0
        if self._prior is not None:
            self._prior.add_to(tally, self._space, self._goal)
        self._since.clear()
        for turn, record in enumerate(known.records):
            if turn < trials and record.trial_id not in without and not record.is_live:
                tally.add(self._digests(record), turn)
                count += 1
            elif not record.is_live:
                self._since.append(self._digests(record))
        self.basis = self._basis(known, tally, count, tuple(without))

    def _basis(self, known: Knowledge, ended: Tally, count: int, without: tuple[str, ...]) -> Basis:
        trials = count + len(without)
        records = [r for r in known.records[:trials] if r.trial_id not in without]
        for profile in known.profiles:
            ended.add_profile(profile)
        where = self._space, self._goal, self._cost
        basis = Knowledge(records, *where, self._digests, known.profiles, ended, self._earlier)
        return Basis(basis, count, trials, without)

    def priced(self, cost: CostMetric, records: Records) -> "Archive":
        """Returns one under another cost that has read the same trials, and reads none again.

        Args:
            cost: The other cost metric.
            records: See `known`; while both are used, nobody changes them.
        """
        self._read(records)
        other = Archive(self._space, self._goal, cost)
        other._digests, other._earlier = self._digests, self._earlier
        other._ended, other._roll = self._ended.copy(), self._roll.copy()
        other._count, other._prior = self._count, self._prior
        return other

    def _read(self, records: Records) -> None:
        for turn, record in self._roll.ended(records):
            trial = self._digests(record)
            self._ended.add(trial, turn)
            self._since.append(trial)
            self._count += 1

    def spent(self, records: Records, profiles: Sequence[ProfileRecord]) -> float:
        """Returns what everything has cost up to the last reports, exactly summed.

        Args:
            records: See `known`.
            profiles: Every profile.

        Raises:
            InvalidCostError: If the cost metric fails.
        """
        if not is_additive(self._cost):
            held = (use for record in records.values() for use in uses(record, self._space))
            return billed(self._cost, (*held, *map(use_of, profiles)))
        self._due += self._bills.ended(records)
        while self._due:
            self._paid = plus(self._paid, paid(self._due[-1][1], self._space, self._cost))
            self._due.pop()
        running = (paid(record, self._space, self._cost) for _, record in self._bills.open)
        profiled = (paid_for(record, self._cost) for record in profiles)
        return math.fsum((*self._paid, *running, *profiled))

"""What an earlier sweep showed, as far as it holds for another one."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from raycosttune.core.digest import Digest, summed_up
from raycosttune.core.epochs import Epochs, Seen
from raycosttune.core.figure import counted
from raycosttune.core.goal import Goal
from raycosttune.core.held import resized
from raycosttune.core.observation import EndCause, TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.tally import Tally
from raycosttune.core.timings import Timings


@dataclass(frozen=True)
class Prior:
    """Holds the trials and profiles of an earlier sweep of the same model.

    Of the same job they count as if they were this sweep's own, but for what it spends. Where
    the job has more or less data, its epochs take longer or shorter by as much, and a run is
    taken to need between the same steps and the same epochs as before. Then a cell's epoch time
    counts as one sample, the epochs as an interval, and no run as done. Of other machines only
    the epochs count, in full: they depend on the batch and not on who computes it.

    Attributes:
        records: The trials; what was still running when the sweep broke off has ended.
        profiles: The profiles.
        samples: Samples of this job over those of the earlier one, positive.
        is_elsewhere: Whether it ran on other machines than this job's.
    """

    records: tuple[TrialRecord, ...]
    profiles: tuple[ProfileRecord, ...] = ()
    samples: float = 1.0
    is_elsewhere: bool = False

    def __str__(self) -> str:
        """Says how much it is, and how far it holds."""
        profiles = f", {counted(len(self.profiles), 'profile')}" if self.profiles else ""
        scaled = f", on {self.samples:g} times the data" if self.samples != 1 else ""
        elsewhere = ", of which the epochs alone count here" if self.is_elsewhere else ""
        return f"{counted(len(self.records), 'trial')}{profiles}{scaled}{elsewhere}"

    def add_to(self, tally: Tally, space: Space, goal: Goal) -> tuple[Digest, ...]:
        """Adds what the earlier sweep showed at batches that may be chosen now.

        Args:
            tally: What it is added to, before anything else is.
            space: The legal cells.
            goal: This sweep's.

        Returns:
            What each trial says, none where the amount of data differs.
        """
        batches = {cell.batch_size for cell in space.cells}
        told = (record for record in self.records if record.allocation.batch_size in batches)
        digests = tuple(summed_up(record, goal) for record in told)
        if self.is_elsewhere:
            digests = tuple(map(_placeless, digests))
        profiles = () if self.is_elsewhere else self.profiles
        if self.samples == 1:
            for turn, digest in enumerate(digests, -len(digests)):
                tally.add(digest, turn)
            for profile in profiles:
                tally.add_profile(profile)
            return digests
        tally.assume(*self._times(digests, profiles, space))
        for turn, (digest, seen) in enumerate(self._epochs(digests), -len(digests)):
            tally.expect(digest, turn, seen)
        return ()

    def _times(
        self, digests: Sequence[Digest], profiles: Sequence[ProfileRecord], space: Space
    ) -> tuple[dict[tuple[str, Allocation], float], dict[tuple[str, int], float]]:
        """Returns seconds of an epoch by class and cell, start-ups by type and workers."""
        timings = Timings[tuple[str, Allocation]]()
        for digest in digests:
            name, cell = space.time_class(digest.record.recipe), digest.record.allocation
            timings.add(digest, partial(_placed, space, name, cell))
        for profile in profiles:
            recipe = profile.profile.recipe
            if recipe is None and space.affects_time:
                continue  # nobody knows of which class
            name = space.time_class(recipe or {})
            for cell, second in profile.epoch_seconds.items():
                timings.add_epochs((name, cell), (second,))
        return (
            {where: seen.median * self.samples for where, seen in timings.epochs.items()},
            {where: seen.median for where, seen in timings.starts.items()},
        )

    def _epochs(self, digests: Sequence[Digest]) -> list[tuple[Digest, Mapping[int, Seen]]]:
        """Returns the first trial of each recipe, and its epochs in this job by batch."""
        firsts: dict[str, Digest] = {}
        seen: dict[str, dict[int, Seen]] = defaultdict(dict)
        for digest in digests:
            if digest.epochs is not None:
                firsts.setdefault(digest.recipe, digest)
                batch, known = digest.epochs.batch_size, seen[digest.recipe]
                known[batch] = known.get(batch, Seen(batch)).plus(self._widened(digest.epochs))
        return [(digest, seen[recipe]) for recipe, digest in firsts.items()]

    def _widened(self, epochs: Epochs) -> Epochs:
        low = min(epochs.low, epochs.low / self.samples)
        return replace(epochs, low=low, high=max(epochs.high, epochs.high / self.samples))


def _placed(space: Space, name: str, cell: Allocation, workers: int) -> tuple[str, Allocation]:
    return name, resized(space, cell, workers)


def _placeless(digest: Digest) -> Digest:
    """Returns what a trial says of epochs alone: no cell, no time, no memory of these machines."""
    record = digest.record
    ended = record.ended
    if ended is not None and ended.cause in (EndCause.OUT_OF_MEMORY, EndCause.FAILED):
        ended = replace(ended, cause=EndCause.STOPPED)
    elsewhere = replace(record.allocation, nodes=0)  # no cell of any space
    return replace(
        digest,
        record=replace(record, allocation=elsewhere, ended=ended),
        epoch_seconds={},
        startup_seconds={},
        firsts={},
        extras=(),
        seconds_to_target=math.inf,
        is_resized=True,
    )

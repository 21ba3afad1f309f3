"""What a large sweep weighs by: its ended trials of a while ago, until more of them say otherwise.

A fit to hundreds of trials hardly moves by one more, yet takes as long as ever. So it is kept while
the trials that ended since are few beside those it rests on, none moves what it says, and nothing
happened that decisions hang on. Fits then come at sizes that grow geometrically, and an answer
takes as long whatever is known. Sweeps of fewer than `FEWEST` ended trials keep none.
"""

import math
from collections.abc import Iterable
from functools import cached_property

from scipy.special import ndtri

from raycosttune.core.accuracy_surrogate import DEFAULT_SLACK, AccuracySurrogate
from raycosttune.core.array import Floats
from raycosttune.core.digest import Digest
from raycosttune.core.epochs import Seen
from raycosttune.core.held import resized
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.recipe_epochs import NOISE_SD
from raycosttune.core.tally import Tally
from raycosttune.core.time_surrogate import MEDIAN_WORTH
from raycosttune.core.times import Times

KEPT = ("startup", "starts", "grid", "cells", "places", "hourly", "rates", "plans", "incumbent")
FEWEST = 256
PART = 8  # one trial may have ended since for so many that it rests on
UNLIKELY = 0.05  # of what was expected of a batch's epochs, as much may be ruled out


class Basis:
    """Is what ended trials said.

    Args:
        known: That, and nothing of the others.
        ended: How many they are.
        trials: How many trials had begun.
        without: Those of them that had not ended, by name.
    """

    def __init__(self, known: Knowledge, ended: int, trials: int, without: tuple[str, ...]) -> None:
        self.known, self.ended = known, ended
        self._trials, self._without = trials, without

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        """Bounds of log T that cells timed since narrow, each its own alone, shape (cells,)."""
        return self.known.time.log_least.copy(), self.known.time.log_most.copy()

    @property
    def data(self) -> dict[str, object]:
        """Its trials as JSON-able data."""
        return {"trials": self._trials, "without": list(self._without)}

    def holds(self, known: Knowledge, ended: int, since: Iterable[Digest]) -> bool:
        """Tells whether decisions may still rest on it.

        Args:
            known: What the records say now.
            ended: How many trials have ended by now.
            since: Those of them that had not when it last held.
        """
        more, before = ended - self.ended, self.known
        if more * PART > self.ended or _is_other(before.tally, known.tally):
            return False
        if before.incumbent is None:
            return False
        rarity = -float(ndtri(UNLIKELY / 2 / (more + len(known.live) or 1)))
        return not any(
            self._times_moved(known, trial, rarity)
            or _starts_moved(before.tally, known.tally, trial)
            or _epochs_moved(before, known, trial)
            for trial in (*since, *known.live)
        )

    def rests(self, known: Knowledge) -> Knowledge:
        """Returns what is known, weighed by its fits to the same cells."""
        least, most = self._bounds
        return _Resting(known, self.known, (least.copy(), most.copy()))

    def _times_moved(self, now: Knowledge, trial: Digest, rarity: float) -> bool:
        """Tells whether epochs of a trial took other times than was expected of them.

        No cell may be off by more deviations than one of all trials since would be with a chance of
        `UNLIKELY` (Bonferroni). One that was not timed may be the best as soon as it is, where its
        batch has reached the target; and what contradicts the bounds widens their slack.
        """
        before, times = self.known.tally.epoch_seconds, self.known.time
        for workers in trial.epoch_seconds:
            cell = resized(now.space, trial.record.allocation, workers)
            if (place := now.grid.index.get(cell)) is None:
                continue
            was, seen = before.get(("", place)), now.tally.epoch_seconds.get(("", place))
            if seen is None:
                continue
            if was is not None:
                off = seen.log_median - was.log_median
                fewer = max(1 / len(was) - 1 / len(seen), 0.0)
                spread = times.noise**2 / MEDIAN_WORTH * fewer
            else:
                low, high = times.narrowed(place, seen)
                if cell.batch_size in now.tally.best or low > high:
                    return True
                self._bounds[0][place], self._bounds[1][place] = low, high
                off = seen.log_median - float(times.log_mean[place])
                spread = times.noise**2 / len(seen) + float(times.log_sd[place]) ** 2
            if abs(off) > rarity * math.sqrt(spread):
                return True
        return False


class _Resting(Knowledge):
    """Is what is known now, by fits to what was known before.

    Args:
        now: What is known now.
        before: What was known before.
        bounds: Lower and upper log T by now, both of shape (cells,).
    """

    def __init__(self, now: Knowledge, before: Knowledge, bounds: tuple[Floats, Floats]) -> None:
        told = now.digest_of, now.profiles, now.tally, now.earlier
        super().__init__(now.records, now.space, now.goal, now.cost, *told)
        for kept in KEPT:
            vars(self)[kept] = getattr(before, kept)
        self._before, self._bounds = before, bounds

    @cached_property
    def times(self) -> Times:
        """Epoch time by class of recipe and cell."""
        return self._before.times.within(*self._bounds)

    @cached_property
    def accuracy(self) -> AccuracySurrogate:
        """Epochs to the target by batch and recipe."""
        return super().accuracy.resting_on(self._before.accuracy)


def _is_other(before: Tally, now: Tally) -> bool:
    """Tells whether anything happened that is no matter of degree."""
    return (
        before.is_delivered != now.is_delivered
        or max(before.violation, DEFAULT_SLACK) < now.violation
        or before.failures != now.failures
        or before.out_of_memory != now.out_of_memory
    )


def _starts_moved(before: Tally, now: Tally, trial: Digest) -> bool:
    """Tells whether start-ups as a trial's left the range of those before."""
    for workers in trial.startup_seconds:
        where = trial.record.allocation.node_type, workers
        was, middle = before.startup_seconds.get(where), now.startup_seconds[where].median
        if was is None or not was.least <= middle <= was.most:
            return True
    return False


def _epochs_moved(before: Knowledge, now: Knowledge, trial: Digest) -> bool:
    """Tells whether runs as a trial need other epochs than was expected of the best recipes."""
    if trial.epochs is None:
        return False
    if trial.reached is not None and _leads(before.tally, now.tally, trial):
        return True
    batch, recipe, best = trial.epochs.batch_size, trial.recipe, before.incumbent
    leader = now.tally.best.get(batch)
    if recipe not in {leader and leader.recipe, best and best.recipe}:
        return False
    return _needs_others(before, now, batch, recipe)


def _leads(before: Tally, now: Tally, trial: Digest) -> bool:
    """Tells whether another recipe than before is the best at a trial's batch or in its cells."""
    batch = trial.record.allocation.batch_size
    hits = now.hits(batch, trial.recipe)
    cells = [cell for cell in (() if hits is None else hits.own) if cell in now.own]
    leaders = [(before.own.get(cell), now.own[cell]) for cell in cells]
    leaders.append((before.best.get(batch), now.best[batch]))
    return any(was is None or was.recipe != leader.recipe for was, leader in leaders)


def _needs_others(before: Knowledge, now: Knowledge, batch: int, recipe: str) -> bool:
    was, runs = before.tally.runs(batch, recipe), now.tally.recipes[recipe].runs[batch]
    seen, past = runs.seen, Seen(batch) if was is None else was.seen
    if seen.low > past.low:
        expected = before.accuracy.samples(recipe, batch)
        if expected.weights[expected.epochs <= seen.low].sum() > UNLIKELY:
            return True
    if past.reached == 0:
        return seen.reached > 0
    return abs(seen.mean - past.mean) > NOISE_SD / math.sqrt(past.reached)

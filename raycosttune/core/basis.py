"""What a large sweep weighs by: its ended trials of a while ago, until more of them say otherwise.

A fit to hundreds of trials hardly moves by one more, yet takes as long as ever. So it is kept while
the trials that ended since are few beside those it rests on, none moves what it says, and nothing
happened that decisions hang on. Fits then come at sizes that grow geometrically, and an answer
takes as long whatever is known. Sweeps of fewer than `FEWEST` ended trials keep none.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from typing import TypeVar

from scipy.special import ndtri

from raycosttune.core.accuracy_surrogate import DEFAULT_SLACK
from raycosttune.core.epochs import Seen
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.recipe_epochs import NOISE_SD
from raycosttune.core.runs import Hits, Runs
from raycosttune.core.tally import Tally
from raycosttune.core.time_surrogate import MEDIAN_WORTH

FEWEST = 256
PART = 8  # one trial may have ended since for so many that it rests on
UNLIKELY = 0.05  # of what was expected of a batch's epochs, as much may be ruled out

Where = TypeVar("Where")
Said = TypeVar("Said")


@dataclass(frozen=True)
class Basis:
    """Is what ended trials said.

    Attributes:
        known: That, and nothing of the others.
        ended: How many they are.
        trials: How many trials had begun.
        without: Those of them that had not ended, by name.
    """

    known: Knowledge
    ended: int
    trials: int
    without: tuple[str, ...]

    @property
    def data(self) -> dict[str, object]:
        """Its trials as JSON-able data."""
        return {"trials": self.trials, "without": list(self.without)}

    def holds(self, known: Knowledge, ended: int) -> bool:
        """Tells whether decisions may still rest on it.

        Args:
            known: What the records say now.
            ended: How many trials have ended by now.
        """
        if (ended - self.ended) * PART > self.ended or _is_other(self.known.tally, known.tally):
            return False
        best = self.known.incumbent
        return best is not None and not (
            _times_moved(self.known, known) or _epochs_moved(self.known, known, best)
        )


def resting_on(known: Knowledge, basis: Knowledge) -> Knowledge:
    """Returns what is known, weighed by fits to what was known before of the same cells."""
    rests, timed, seconds = known.again(), basis.tally.epoch_seconds, known.tally.epoch_seconds
    rests.times = basis.times.tightened({k[1]: seconds[k] for k in seconds if k not in timed})
    for kept in ("startup", "starts", "cells", "places", "rates", "plans", "incumbent"):
        vars(rests)[kept] = getattr(basis, kept)
    rests.accuracy = known.accuracy.resting_on(basis.accuracy)
    return rests


def _is_other(before: Tally, now: Tally) -> bool:
    """Tells whether anything happened that is no matter of degree."""
    return (
        before.is_delivered != now.is_delivered
        or max(before.violation, DEFAULT_SLACK) < now.violation
        or before.failures != now.failures
        or before.out_of_memory != now.out_of_memory
        or _recipes_differ(before.best, now.best)
        or _recipes_differ(before.own, now.own)
    )


def _recipes_differ(before: Mapping[Where, Hits], now: Mapping[Where, Hits]) -> bool:
    if len(before) != len(now):
        return True
    if all(map(is_, before.values(), now.values())):  # spares the hashes of cells
        return False
    return any(was is None or was.recipe != hits.recipe for _, was, hits in _new(before, now))


def _times_moved(before: Knowledge, now: Knowledge) -> bool:
    """Tells whether epochs or start-ups took other times than was expected of them.

    No cell's epochs may take a time so unlikely that one of all cells timed since would take it
    with a chance of `UNLIKELY` (Bonferroni). A cell that was not timed may be the best as soon as
    it is, where its batch has reached the target; and what contradicts the bounds widens their
    slack.
    """
    times, batches = before.time, before.grid.batches
    new = _new(before.tally.epoch_seconds, now.tally.epoch_seconds)
    timed = [each for each in new if each[1] != each[2]]  # a restored sweep reads all anew
    most = -float(ndtri(UNLIKELY / 2 / max(len(timed), 1)))
    for (_, place), was, seen in timed:
        if was is not None:
            off = seen.log_median - was.log_median
            spread = times.noise**2 / MEDIAN_WORTH * (1 / len(was) - 1 / len(seen))
        elif int(batches[place]) in now.tally.best or times.contradicts(place, seen):
            return True
        else:
            off = seen.log_median - float(times.log_mean[place])
            spread = times.noise**2 / len(seen) + float(times.log_sd[place]) ** 2
        if abs(off) > most * math.sqrt(spread):
            return True
    starts = _new(before.tally.startup_seconds, now.tally.startup_seconds)
    return any(was is None or not was.least <= s.median <= was.most for _, was, s in starts)


def _epochs_moved(before: Knowledge, now: Knowledge, incumbent: Incumbent) -> bool:
    """Tells whether runs of the best recipes needed other epochs than was expected of them."""
    best, mine = {(batch, hits.recipe) for batch, hits in now.tally.best.items()}, incumbent.recipe
    recipes = {recipe for _, recipe in best} | {mine}
    each = ((key, before.tally.recipes[key].runs, now.tally.recipes[key].runs) for key in recipes)
    return any(
        _needs_others(before, recipe, was, runs)
        for recipe, *both in each
        for batch, was, runs in _new(*both)
        if recipe == mine or (batch, recipe) in best
    )


def _needs_others(before: Knowledge, recipe: str, was: Runs | None, runs: Runs) -> bool:
    batch = runs.seen.batch_size
    seen, past = runs.seen, Seen(batch) if was is None else was.seen
    if seen.low > past.low:
        expected = before.accuracy.samples(recipe, batch)
        if expected.weights[expected.epochs <= seen.low].sum() > UNLIKELY:
            return True
    if past.reached == 0:
        return seen.reached > 0
    return abs(seen.mean - past.mean) > NOISE_SD / math.sqrt(past.reached)


def _new(
    before: Mapping[Where, Said], now: Mapping[Where, Said]
) -> list[tuple[Where, Said | None, Said]]:
    """Returns what says something new, and what it said before."""
    was = before.get
    return [(where, was(where), says) for where, says in now.items() if was(where) is not says]

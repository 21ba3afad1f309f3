"""The metric over batches and epochs: A(b, e), from the epochs to each of some levels."""

import math
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.belief import Belief
from raycosttune.core.digest import Digest, Points, nearer, summed_up
from raycosttune.core.goal import Goal
from raycosttune.core.isotonic import isotonic
from raycosttune.core.law import TYPICAL_EPOCHS
from raycosttune.core.observation import Recipe
from raycosttune.core.outlook import Outlook
from raycosttune.core.prediction import Prediction
from raycosttune.core.tally import Tally
from raycosttune.core.time_surrogate import Z90, TimeSurrogate

CHANCES = (0.05, 0.5, 0.95)
SEEN, AHEAD = 10, 5  # levels that runs came to, and levels from there to the target
BARELY, STOOD = 0.01, 1.2  # so little of the gap closed in so many times the epochs: flat
LUCKY = 2.0  # deviations by which the best of many evaluations is off its curve
MOST_LOG = 50.0  # log epochs beyond all that anybody makes
MOST = 30  # trials that it rests on: each level reads them anew
FREE = 1.5  # numbers that a level of an isotonic fit is worth


class Stand(NamedTuple):
    """Is a run that stands still.

    Attributes:
        near: Epochs after which it was about as near to the target as it came.
        until: Epochs that it has made since its start.
        pace: Log epochs in which it came nearer by 1 until it stood.
    """

    near: float
    until: float
    pace: float

    def epochs(self, nearer: float) -> float:
        """Returns the epochs after which it is typically nearer by so much.

        In the log of the epochs it stands as long again as it has stood, then comes nearer as
        fast as before.

        References:
            Gott 1993 (of what has lasted so long, half lasts as long again).
        """
        logs = 2 * math.log(self.until) - math.log(self.near) + self.pace * nearer
        return math.exp(min(logs, MOST_LOG))


class MetricSurface:
    """Predicts the best value that a run reports within some epochs.

    A run is at a level of the metric within e epochs exactly where the epochs to that level are
    at most e. So a belief of the epochs is formed for each of some levels as it is for the
    target: from when runs first came to it, or did not. Read the other way round, the quantiles
    of the epochs at a batch are those of A(b, e). They rise with the epochs and fall with the
    batch; where the beliefs contradict that they are projected onto it. What evaluations are off
    by is added. The levels beyond where the nearest run stands still take long; see `Stand`.

    Where a run is under way at a batch, or was given up, it is that one, going on. A run ends at
    its target: the interval is open where it may be there, and below the worst level seen.

    Args:
        outlook: What is likely of the epochs of a recipe; a value of the metric is known.

    References:
        Liang et al. 2022 (accuracy isotonic in epochs, antitonic in the batch); Meyer & Woodroofe
        2000 (the noise about an isotonic fit).
    """

    def __init__(self, outlook: Outlook) -> None:
        self._outlook, self._known = outlook, outlook.known

    @property
    def recipe(self) -> Recipe:
        """The recipe that runs have, empty for one not tried."""
        key = self._outlook.recipe
        return {} if key is None else self._known.recipes.get(key, {})

    @property
    def time(self) -> TimeSurrogate:
        """How long that recipe's epochs take."""
        return self._outlook.time

    @property
    def batches(self) -> tuple[int, ...]:
        """The batches that it knows."""
        return self._outlook.batches

    def predict(self, batch_size: int, epochs: float) -> Prediction:
        """Predicts the best value within some epochs.

        Args:
            batch_size: One of `batches`.
            epochs: How many, positive.

        Returns:
            The median and the ends of a 90 % interval, infinite where it is open.
        """
        logs, at = self.log_epochs[:, :, self.batches.index(batch_size)], math.log(epochs)
        soon, mid, late = (float(np.interp(at, row, self.gaps)) for row in logs)
        off = Z90 * self.noise
        best = mid - math.hypot(mid - soon, off) if soon > 0 else -math.inf
        worst = mid + math.hypot(late - mid, off) if late < self.gaps[0] else math.inf
        goal = self._known.goal
        values = [goal.target - goal.sign * gap for gap in (worst, mid, best)]
        return Prediction(*values[:: goal.sign])

    @cached_property
    def gaps(self) -> Floats:
        """Gap of each level to the target, falling to 0, shape (levels,).

        They are quantiles of what runs came to, which lie close where progress is slow, and even
        steps from the best of it to the target. Where runs stand still one lies just beyond the
        best: for how long none has come to it tells how long they are likely to stand.
        """
        seen = np.quantile(self._seen, np.linspace(1, 0, SEEN))
        ahead = np.linspace(self.nearest, 0.0, AHEAD + 1)
        beyond = [(1 - BARELY) * self.nearest] if self._stand is not None else []
        return np.unique(np.concatenate([seen, beyond, ahead]))[::-1]

    @property
    def nearest(self) -> float:
        """The least gap that a run came to on its way, 0 where all began at the target."""
        return float(self._seen.min())

    @cached_property
    def _trials(self) -> list[Digest]:
        """The trials that it rests on: those of the recipe first, then those that came nearest."""
        told = [digest for digest in self._known.digests if digest.gaps]
        own = self._outlook.recipe
        told.sort(key=lambda trial: (trial.recipe != own, min(gap for _, gap in trial.gaps)))
        return told[:MOST]

    @cached_property
    def _nearer(self) -> list[tuple[Digest, Points]]:
        """The evaluations that brought runs nearer, by run, of the recipe if it has any.

        Those that break a bound on another metric count where no other lies below the target.
        """
        goal, recipe = self._known.goal, self._outlook.recipe
        found = self._on_the_way(goal) or self._on_the_way(replace(goal, constraints=()))
        return [pair for pair in found if pair[0].recipe == recipe] or found

    def _on_the_way(self, goal: Goal) -> list[tuple[Digest, Points]]:
        points = ((digest, nearer(digest, goal)) for digest in self._trials)
        return [pair for pair in points if pair[1]]

    @cached_property
    def _seen(self) -> Floats:
        """Gaps of these evaluations."""
        return np.array([gap for _, found in self._nearer for _, gap in found] or [0.0])

    @cached_property
    def _stand(self) -> Stand | None:
        """Where the run that came nearest stands, None where it goes on coming nearer."""
        if not self._nearer:
            return None
        trial, found = min(self._nearer, key=lambda pair: pair[1][-1][1])
        begun, best = found[0], found[-1][1]
        if min(gap for _, gap in trial.gaps) < best:
            return None  # it went on to the target, or past a bound on another metric
        # The best of many evaluations is a lucky one.
        close = (1 + BARELY) * best + LUCKY * self.noise
        near = next(epoch for epoch, gap in found if gap <= close)
        until = max(epoch for epoch, _ in trial.gaps)
        pace = math.log(near / begun[0]) / (begun[1] - best) if near > begun[0] else 0.0
        return Stand(near, until, pace) if until >= STOOD * near else None

    @cached_property
    def log_epochs(self) -> Floats:
        """Log epochs to each level with the chances of `CHANCES`, shape (3, levels, batches)."""
        first = min(digest.gaps[0][0] for digest in self._trials)
        logs = np.stack([self._of_level(float(gap), first) for gap in self.gaps], axis=1)
        for quantile in logs:
            # The second projection keeps the order that the first one made.
            for of_batch in quantile.T:
                of_batch[:] = isotonic(of_batch, np.ones(len(of_batch)))
            for of_level in quantile:
                of_level[:] = isotonic(of_level, np.ones(len(of_level)))
        return logs

    def _of_level(self, gap: float, first: float) -> Floats:
        """Returns log epochs to a level, shape (3, batches).

        Args:
            gap: Its gap to the target.
            first: Epochs of the first evaluation.
        """
        known, outlook = self._known, self._outlook
        goal = replace(known.goal, target=known.goal.target - known.goal.sign * gap)
        tally = Tally(known.space, goal)
        for turn, digest in enumerate(self._trials):
            tally.add(summed_up(digest.record, goal), turn)
        clues, stand, recipes = outlook.clues, self._stand, known.tally.recipes
        if gap > 0:
            # As a curve is read: the gap shrinks with the log of the epochs, from the first one.
            left = gap / self.gaps[0]
            typical = first**left * max(TYPICAL_EPOCHS, first) ** (1 - left)
            clues = replace(clues, deadline_seconds=None, typical_epochs=typical)
            recipes = tally.recipes
        if stand is not None and gap < self.nearest:
            typical = max(clues.typical_epochs, stand.epochs(self.nearest - gap))
            clues = replace(clues, typical_epochs=typical)
        belief = outlook.belief
        if clues is not outlook.clues:
            runs = {key: history.runs for key, history in recipes.items()}
            belief = Belief(belief.law, outlook.recipe, runs, clues)
        columns = []
        for batch in self.batches:
            runs_here = tally.runs(batch, outlook.recipe)
            done = 0.0 if runs_here is None or runs_here.hits else runs_here.seen.low
            columns.append(np.quantile(np.log(belief.needs(batch, done)), CHANCES))
        return np.array(columns).T

    @cached_property
    def noise(self) -> float:
        """What an evaluation is off its curve by, as a deviation."""
        squares, free = 0.0, 1.0
        for digest in self._trials:
            gaps = np.array([gap for _, gap in digest.gaps if gap > 0])
            fitted = isotonic(gaps, np.ones(len(gaps)), increasing=False)
            squares += float(((gaps - fitted) ** 2).sum())
            free += max(len(gaps) - FREE * len(np.unique(fitted)), 0.0)
        return math.sqrt(squares / free)

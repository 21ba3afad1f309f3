"""What the trials of one recipe say."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from raycosttune.core.array import Floats
from raycosttune.core.digest import Digest
from raycosttune.core.epochs import Seen
from raycosttune.core.observation import Recipe
from raycosttune.core.recipe_epochs import RecipeEpochs
from raycosttune.core.runs import Runs


@dataclass(frozen=True, eq=False)
class History:
    """Sums up the trials of one recipe.

    Attributes:
        key: Key of the recipe.
        recipe: The recipe.
        first: Turn of its first trial among all.
        reported: Turn of its first trial that reported, infinite before.
        tried: Places of the cells in which it runs or reported.
        runs: Its runs that reported, by batch.
        expected: What an earlier sweep leaves to expect of its epochs, by batch.
        noise_scales: Noise scales of the space, shape (s,).
    """

    key: str
    recipe: Recipe
    first: int
    noise_scales: Floats
    reported: float = math.inf
    tried: frozenset[int] = frozenset()
    runs: Mapping[int, Runs] = field(default_factory=dict)
    expected: Mapping[int, Seen] = field(default_factory=dict)

    def plus(self, trial: Digest, turn: int, place: int | None, limit: float) -> "History":
        """Returns these trials and one more.

        Args:
            trial: What it says.
            turn: Its turn among all trials.
            place: Place of its cell in the space, None for another cell.
            limit: The deadline of a run, infinite without one.
        """
        tried, runs, reported = self.tried, self.runs, self.reported
        if place is not None and (trial.epochs is not None or trial.record.is_live):
            tried |= {place}
        if trial.epochs is not None:
            batch = trial.epochs.batch_size
            before = runs.get(batch) or Runs(Seen(batch))
            runs = {**runs, batch: before.plus(trial, trial.epochs, turn, limit)}
            reported = min(turn, reported)
        is_first = turn <= self.first
        return History(
            key=self.key,
            recipe=trial.record.recipe if is_first else self.recipe,
            first=min(turn, self.first),
            noise_scales=self.noise_scales,
            reported=reported,
            tried=tried,
            runs=runs,
            expected=self.expected,
        )

    @cached_property
    def epochs(self) -> RecipeEpochs:
        """Its epochs to the target; at a batch at which it ran, by its runs alone."""
        seen = {**self.expected, **{batch: runs.seen for batch, runs in self.runs.items()}}
        return RecipeEpochs(seen, self.noise_scales, self.reported)

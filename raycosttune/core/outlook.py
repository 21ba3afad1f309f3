"""What runs at each batch may cost, under every law of the epochs that a recipe needs."""

import math
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.belief import Belief, Clues
from raycosttune.core.cells import cells_of
from raycosttune.core.gaussian import below
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.law import law
from raycosttune.core.schedule import Choices, Step, best_step

UNSURE_SD = 0.08  # epoch times less certain than this are taken with caution
MISSING = 4.0  # what a batch counts, in whole runs, under laws that no cell is fast enough for
RESTART = 1.43  # a restart costs more than what it costs whoever knows the epochs in advance
LEAST_CHANCE, EVEN = 1e-3, 0.5
LEAST_RATE = 1e-12
LEAST_COST = 1e-300
LEAST_SD = 0.02
HOPE = 1.0  # deviations by which an unknown epoch time may turn out shorter
NEGLIGIBLE = 1e-15  # laws of so little weight change no average


@dataclass(frozen=True)
class Near:
    """Says which cells may be the best.

    Attributes:
        chance: How much each cell is near the cheapest in time, shape (cells,), summing to 1.
        doubt: The same, weighed by how uncertain it is that the deadline is met, in [0, 1].
        cost: Expected cost of a run of the cheapest.
    """

    chance: Floats
    doubt: Floats
    cost: float


class Outlook:
    """Holds the costs that a belief implies.

    Args:
        known: What the records say; epoch times are measured in at least one cell.
        recipe: Key of a recipe, or None for one not tried.
        can_resize: Whether a run may change its workers.

    Attributes:
        caution: Deviations by which a step takes an uncertain epoch time longer.
    """

    caution = 1.0

    def __init__(self, known: Knowledge, recipe: str | None, *, can_resize: bool) -> None:
        self.known, self.recipe = known, recipe
        self._can_resize = can_resize
        self.cells, places = known.cells, known.places
        self.time = known.time_of(recipe)
        self.log_seconds = self.time.log_mean[places]
        self.sd = self.time.log_sd[places]
        self.startups = known.starts[1][places]
        # What costs nothing at first is ranked by its time.
        self.rates = np.maximum(known.rates, LEAST_RATE)
        batches, self._at = np.unique(cells_of(known.space).batches[places], return_inverse=True)
        self.batches = tuple(batches.tolist())
        self.limit = known.limit
        # A deadline tells of the fastest cell, which may be one whose time is not known yet.
        hoped = np.exp(self.log_seconds - HOPE * self.sd)
        fastest = [float(hoped[self.places(batch)].min()) for batch in self.batches]
        self.clues = Clues(
            known.goal.deadline_seconds,
            np.array(fastest),
            float(self.startups.min()),
            known.period,
        )
        runs = {key: history.runs for key, history in known.tally.recipes.items()}
        self.belief = Belief(law(self.batches), recipe, runs, self.clues)
        self._vain: dict[tuple[int, float], tuple[Floats, Floats]] = {}

    def places(self, batch_size: int) -> Ints:
        """Places of a batch's cells."""
        return np.flatnonzero(self._at == self.batches.index(batch_size))

    @cached_property
    def costs(self) -> Floats:
        """Cost of a run on the best workers under each law, shape (s, o, b); infinite if late."""
        columns = []
        for k, batch in enumerate(self.batches):
            cost, _ = self.cheapest(batch, self.belief.epochs[:, :, k], caution=0.5)
            columns.append(cost)
        return np.stack(columns, axis=-1)

    @cached_property
    def whole(self) -> float:
        """Expected cost of a run at the best batch, over the laws under which one is in time."""
        best = self.costs.min(axis=2)
        feasible = np.isfinite(best)
        chance = float((self.belief.weights * feasible).sum())
        if chance < LEAST_CHANCE:
            slow = self.rates.min() * np.exp(self.log_seconds).max()
            return float(slow * self.belief.expected(self.belief.epochs).min())
        return float((self.belief.weights * np.where(feasible, best, 0.0)).sum()) / chance

    @cached_property
    def chance_in_time(self) -> float:
        """How likely some cell reaches the target by the deadline."""
        return float((self.belief.weights * np.isfinite(self.costs).any(axis=2)).sum())

    @cached_property
    def _filled(self) -> Floats:
        return np.where(np.isfinite(self.costs), self.costs, MISSING * self.whole)

    @cached_property
    def least(self) -> float:
        """Expected cost at the best batch for whoever knew the epochs in advance."""
        return float(self.belief.expected(self._filled).min())

    def cheapest(self, batch_size: int, epochs: Floats, *, caution: float) -> tuple[Floats, Ints]:
        """Returns cost and place of the cheapest cell that makes some epochs in time.

        Args:
            batch_size: The batch.
            epochs: Any shape.
            caution: Deviations by which an uncertain epoch time is taken longer.

        Returns:
            Of the shape of `epochs`; infinite costs where no cell is in time.
        """
        k = self.places(batch_size)
        seconds = self.startups[k] + np.asarray(epochs)[..., None] * np.exp(self.log_seconds[k])
        unsure = np.where(self.sd[k] > UNSURE_SD, caution * self.sd[k], 0.02)
        late = seconds * np.exp(unsure) > self.limit
        late |= np.asarray(epochs)[..., None] > (self.known.goal.max_epochs or math.inf)
        costs = np.where(late, math.inf, seconds * self.rates[k])
        best = costs.argmin(axis=-1)
        return costs.min(axis=-1), k[best]

    def restart(self, batch_size: int, stages: Floats) -> Floats:
        """Returns the expected cost of a fresh run after so many epochs at a batch in vain.

        Args:
            batch_size: The batch that was given up.
            stages: Epochs done there, shape (k,).

        Returns:
            Shape (k,).
        """
        weights = self.belief.weights * self.belief.survival(batch_size, stages)
        total = weights.sum(axis=(1, 2))
        costs = np.tensordot(weights, self._filled, axes=2) / np.maximum(total, LEAST_COST)[:, None]
        known = np.where(total > 0, costs.min(axis=1), MISSING * self.whole)
        return np.asarray(RESTART * known, dtype=np.float64)

    def step(
        self,
        batch_size: int,
        *,
        penalty: float,
        epoch: float = 0.0,
        seconds_left: float = math.inf,
        going: Going | None = None,
    ) -> tuple[float, int]:
        """Plans the next step of a run.

        Args:
            batch_size: Its batch.
            penalty: Least cost of a failure; of a run that goes on, what a fresh one costs now,
                which rises with the epochs made in vain.
            epoch: Epochs done.
            seconds_left: Seconds until the deadline.
            going: How it runs now, None before the start.

        Returns:
            Expected cost from here on, and the place of the cell to go on in.
        """
        k = self.places(batch_size)
        types = dict.fromkeys(self.cells[int(place)].node_type for place in k)
        if going is not None:
            types = {going.node_type: None}
        left = penalty, epoch, seconds_left, going
        # A run stays on its type of machine.
        return min((self._step(batch_size, one, *left) for one in types), key=itemgetter(0))

    def _step(
        self,
        batch_size: int,
        node_type: str,
        penalty: float,
        epoch: float,
        seconds_left: float,
        going: Going | None,
    ) -> tuple[float, int]:
        """Plans the next step of a run on a type of machine; see `step`."""
        cells = ((int(k), self.cells[int(k)]) for k in self.places(batch_size))
        k = np.array(
            [
                k
                for k, cell in cells
                if cell.node_type == node_type and (going is None or going.allows(cell))
            ]
        )
        stages, failing = self._failing(batch_size, epoch)
        counts = [self.cells[int(place)].workers for place in k]
        unsure = np.where(self.sd[k] > UNSURE_SD, self.caution * self.sd[k], 0.0)
        seconds = np.exp(self.log_seconds[k] + unsure)
        choices = Choices(
            seconds,
            self.rates[k],
            self.startups[k],
            self._can_resize and (going is None or going.can_resize),
            lost=0.0 if going is None else going.lost_epochs,
            changes=0 if going is None else going.changes,
            sd=self._sd(k, stages - epoch),
        )
        if going is None:
            failing = np.maximum(failing, penalty)
        else:
            failing = failing * (penalty / max(failing[0], LEAST_COST))
        step: Step = best_step(
            choices,
            stages,
            failing,
            seconds_left=seconds_left,
            epoch=epoch,
            place=None if going is None else counts.index(going.workers),
        )
        return step.cost, int(k[step.place])

    def _failing(self, batch_size: int, epoch: float) -> tuple[Floats, Floats]:
        """Returns the stages of a run, and what follows where it is given up in each of them."""
        key = batch_size, epoch
        if key not in self._vain:
            stages = self.belief.stages(batch_size, epoch)
            done = np.concatenate([[epoch], stages[:-1]])
            self._vain[key] = stages, self.restart(batch_size, done)
        return self._vain[key]

    def _sd(self, places: Ints, epochs: Floats) -> Floats:
        """Deviation of the log of the seconds of so many epochs, shape (epochs, places)."""
        single = self.time.noise**2 * self.known.period / epochs[:, None]
        return np.asarray(np.sqrt(self.sd[places] ** 2 + single), dtype=np.float64)

    def likeliest_in_time(self) -> tuple[int, float]:
        """Returns place and chance of the cell that most likely meets the deadline."""
        chances = np.zeros(len(self.cells))
        for batch in self.batches:
            k = self.places(batch)
            epochs = self.belief.stages(batch, 0.0)[:, None]
            seconds = self.startups[k] + epochs * np.exp(self.log_seconds[k])
            apart = np.log(max(self.limit, 1e-9) / seconds) / np.maximum(self.sd[k], LEAST_SD)
            chances[k] = below(apart).mean(axis=0)
        return int(np.argmax(chances)), float(chances.max())

    @cached_property
    def near(self) -> Near:
        """Which cells may be the best; where the deadline is in danger, also fast unknown ones."""
        weights = self.belief.weights.ravel()
        likely = np.flatnonzero(weights > NEGLIGIBLE)
        weights = weights[likely]
        epochs = self.belief.epochs.reshape(-1, len(self.batches))[likely][:, self._at]
        seconds = self.startups + epochs * np.exp(self.log_seconds)  # shape (laws, cells)
        is_safe = self.chance_in_time > EVEN
        hoped = seconds * np.exp(-(0.5 if is_safe else 1.5) * np.minimum(self.sd, 0.8))
        in_time = hoped <= self.limit
        fast = hoped <= 1.2 * hoped.min(axis=1, keepdims=True)
        counts = np.where(in_time.any(axis=1, keepdims=True), in_time, fast)
        costs = np.where(counts, (seconds if is_safe else hoped) * self.rates, math.inf)
        best = costs.min(axis=1, keepdims=True)
        share = (ratio := best / costs) * ratio
        share *= share * ratio  # a fifth power: what costs a fifth more counts 1/e
        share /= share.sum(axis=1, keepdims=True)
        doubt = np.zeros_like(self.sd)
        if math.isfinite(self.limit):
            met = below((math.log(self.limit) - np.log(seconds)) / np.maximum(self.sd, 0.02))
            doubt = weights @ (share * 4 * met * (1 - met))
        return Near(weights @ share, doubt, float(weights @ best[:, 0]))

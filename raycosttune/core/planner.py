"""What to do next for the smallest bill: profile, run, resize, stop, or end the sweep."""

import math
from functools import cached_property

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.belief import SHARED
from raycosttune.core.decision import Continue, Decision, Resize, Stop, StopCause
from raycosttune.core.digest import Digest
from raycosttune.core.evidence import RUN_SD
from raycosttune.core.experiment import Experiment
from raycosttune.core.figure import whole
from raycosttune.core.fresh import Fresh, valued
from raycosttune.core.going import Going
from raycosttune.core.guard import Chances, chances, guarded, hopeless
from raycosttune.core.held import present
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.outlook import Outlook
from raycosttune.core.space import Allocation
from raycosttune.core.under_way import under_way

MOST_MISSES = 2  # runs of one cell in vain, where no other recipes can be tried, or that repeat
OPTIMISM = 1.1  # what a fresh run is found dearer for each one given up, that at hand included
LUCK = 1 - SHARED  # of what a run takes beyond what was expected, the part that no other one does
NEAR = 1.03  # going on for so many times the least that any run may cost is as good as it
SAVES = 0.97  # going on, or a fresh run, is the cheaper one where it costs less than this of both


class Planner:
    """Plans from what is known at one moment; epoch times are known in at least one cell.

    Args:
        known: What the records say.
        recipes: Whether new recipes can be proposed.
        can_resize: Whether a running trial may change its workers.
    """

    def __init__(self, known: Knowledge, *, recipes: bool, can_resize: bool) -> None:
        self._known, self._recipes, self._can_resize = known, recipes, can_resize
        self._outlooks: dict[str | None, Outlook] = {}
        self._fresh: dict[str | None, Fresh] = {}

    def outlook(self, recipe: str | None) -> Outlook:
        """Returns what a recipe's runs may cost."""
        if recipe not in self._outlooks:
            self._outlooks[recipe] = Outlook(self._known, recipe, can_resize=self._can_resize)
        return self._outlooks[recipe]

    @property
    def new_recipe(self) -> str | None:
        """The recipe of a fresh run while nothing has reached the target."""
        return None if self._recipes else "{}"

    def fresh(self, recipe: str | None) -> Fresh:
        """Values a fresh run at each batch."""
        if recipe not in self._fresh:
            self._fresh[recipe] = valued(self.outlook(recipe))
        return self._fresh[recipe]

    def first_runs(self) -> list[Experiment]:
        """Ranks the runs to make while nothing has reached the target, best first."""
        recipe = self.new_recipe
        outlook, fresh = self.outlook(recipe), self.fresh(recipe)
        unit = self._known.cost.unit
        order = np.argsort(fresh.costs)
        places = [fresh.places[k] for k in order]
        why = [f"is expected to reach the target for {fresh.costs[k]:.3g} {unit}" for k in order]
        if not fresh.has_hope:
            place, chance = outlook.likeliest_in_time()
            places.insert(0, place)
            why.insert(0, f"reaches the target in time with an estimated chance of {chance:.0%}")
        runs = [
            self._first(outlook, place, reason) for place, reason in zip(places, why, strict=True)
        ]
        return [run for run in runs if self._recipes or not self._is_futile(run.allocation)]

    def _is_futile(self, cell: Allocation) -> bool:
        """Tells whether a cell's runs went to their end in vain too often, or its batch runs."""
        live = (trial.record.allocation.batch_size for trial in self._known.live)
        return cell.batch_size in live or self._known.tally.ends[cell] >= MOST_MISSES

    def _first(self, outlook: Outlook, place: int, why: str) -> Experiment:
        cell = outlook.cells[place]
        epochs = outlook.belief.stages(cell.batch_size, 0.0)
        seconds = outlook.startups[place] + epochs * math.exp(outlook.log_seconds[place])
        price = float(np.minimum(seconds, outlook.limit).mean() * outlook.rates[place])
        recipe = None if self._recipes else "{}"
        return Experiment(cell, recipe, price, 0.0, float(np.median(seconds)), why)

    def further_runs(self, incumbent: Incumbent) -> list[Experiment]:
        """Ranks the runs that pay for themselves once the target is reached, best first."""
        found = [
            self._further(incumbent, batch, incumbent.recipe)
            for batch in self.outlook(incumbent.recipe).batches
            if not self._is_known(batch, incumbent.recipe)
            and not self._is_spent(batch)
            and not self._repeats(batch, incumbent.recipe)
        ]
        if self._recipes and not self._tries_new(incumbent):
            found.append(self._further(incumbent, incumbent.allocation.batch_size, None))
        return sorted((run for run in found if run.value > 0), key=lambda run: -run.value)

    def _is_known(self, batch_size: int, recipe: str) -> bool:
        """Tells whether the epochs of a batch and recipe are known, or being learned."""
        live = ((trial.record.allocation.batch_size, trial.recipe) for trial in self._known.live)
        is_reached = self._known.tally.hits(batch_size, recipe) is not None
        return is_reached or (batch_size, recipe) in live

    def _is_spent(self, batch_size: int) -> bool:
        """Tells whether runs of a batch went to their end too often to be tried again."""
        ends = self._known.tally.ends.items()
        return sum(n for cell, n in ends if cell.batch_size == batch_size) >= MOST_MISSES

    def _repeats(self, batch_size: int, recipe: str) -> bool:
        """Tells whether runs here are given up again and again after as many epochs."""
        runs = self._known.tally.runs(batch_size, recipe)
        return runs is not None and runs.seen.repeats >= MOST_MISSES

    def _tries_new(self, incumbent: Incumbent) -> bool:
        return any(trial.recipe != incumbent.recipe for trial in self._known.live)

    def _further(self, incumbent: Incumbent, batch_size: int, recipe: str | None) -> Experiment:
        known, outlook = self._known, self.outlook(recipe)
        stages = outlook.belief.stages(batch_size, 0.0)
        place = self._place(outlook, batch_size, stages)
        best = self._beside(known.cost_to_beat(incumbent))
        saving, price, seconds = self._worth(best, outlook, place, stages, 0.0)
        price += float(outlook.startups[place] * outlook.rates[place])
        if recipe is None and saving > 0:
            # Among n exchangeable recipes and a new one, the new one is best with chance 1/(n+1).
            saving /= len(known.recipes) + 1
        what = "tries another recipe" if recipe is None else "tries the best recipe here"
        why = (
            f"{what} and is expected to save {saving:.3g} {known.cost.unit} over "
            f"{known.remaining_runs} runs for {price:.3g}"
        )
        return Experiment(outlook.cells[place], recipe, price, saving, seconds, why)

    def _place(self, outlook: Outlook, batch_size: int, stages: Floats) -> int:
        """Returns the cheapest cell; while no run was in time, of those that likely are."""
        if not self._known.is_delivered:
            cost, place = outlook.cheapest(batch_size, stages[len(stages) // 2], caution=0.5)
            if math.isfinite(cost):
                return int(place)
        k = outlook.places(batch_size)
        return int(k[np.argmin(np.exp(outlook.log_seconds[k]) * outlook.rates[k])])

    def _beside(self, best: float) -> Floats | float:
        """Returns what a further run must beat, stage by stage: what is to come, too."""
        return np.minimum(best, self._to_come) if self._to_come is not None else best

    @cached_property
    def _to_come(self) -> Floats | None:
        """Least cost of a run by what runs under way may show, shape (STAGES,); see under_way."""
        found = [self._shown_by(trial) for trial in under_way(self._known)]
        return np.min(found, axis=0) if found else None

    def _shown_by(self, trial: Digest) -> Floats:
        outlook, batch = self.outlook(trial.recipe), trial.record.allocation.batch_size
        epoch = trial.record.epoch
        stages = outlook.belief.stages(batch, epoch)
        lasting = _lasting(stages, outlook.belief.afresh(batch, epoch))
        return outlook.cheapest(batch, lasting, caution=0.5)[0]

    def _worth(
        self,
        best: Floats | float,
        outlook: Outlook,
        place: int,
        stages: Floats,
        epoch: float,
    ) -> tuple[float, float, float]:
        """Returns expected saving, price and seconds of going on until it pays no more."""
        batch = outlook.cells[place].batch_size
        lasting = _lasting(stages, outlook.belief.afresh(batch, epoch))
        costs, _ = outlook.cheapest(batch, lasting, caution=0.5)
        saved = self._known.remaining_runs * np.maximum(best - costs, 0.0)
        if not self._known.is_delivered:
            # In time it is one of the planned runs itself.
            own = outlook.startups[place] + stages * math.exp(outlook.log_seconds[place])
            saved = saved + np.where(own <= outlook.limit, np.minimum(best, costs), 0.0)
        steps = len(stages)
        alive = np.arange(steps, 0, -1) / steps
        seconds = np.cumsum(np.diff(np.concatenate([[epoch], stages])) * alive)
        seconds = seconds * math.exp(outlook.log_seconds[place])
        savings = np.cumsum(saved) / steps
        until = int(np.argmax(savings - seconds * outlook.rates[place]))
        return (
            float(savings[until]),
            float(seconds[until] * outlook.rates[place]),
            float(seconds[until]),
        )

    def next_step(self, record: TrialRecord, going: Going) -> Decision:
        """Decides on a run that has not reached the target, and goes as `going` says."""
        outlook, incumbent = self.outlook(record.key), self._known.incumbent
        if incumbent is not None and self._known.is_delivered:
            return self._if_it_pays(incumbent, outlook, record)
        decision = self._in_time(outlook, record, going)
        if incumbent is None or not isinstance(decision, Stop):
            return decision
        # Some cell is known to be in time: what is learned here may be worth its price.
        learning = self._if_it_pays(incumbent, outlook, record)
        return learning if isinstance(learning, Continue) else decision

    def _in_time(self, outlook: Outlook, record: TrialRecord, going: Going) -> Decision:
        """Decides on a run that is to reach the target by its deadline."""
        left = outlook.limit - record.run_seconds
        if left <= 0:
            return Stop(StopCause.DEADLINE, f"{whole(record.run_seconds)} s have passed")
        batch, epoch = record.allocation.batch_size, record.run[-1].epoch
        seen = chances(outlook, batch, epoch=epoch, seconds_left=left, going=going)
        return hopeless(seen) or self._cheapest(outlook, record, going, seen)

    def _if_it_pays(self, incumbent: Incumbent, outlook: Outlook, record: TrialRecord) -> Decision:
        cell, epoch = present(record, self._known.space), record.run[-1].epoch
        stages = outlook.belief.stages(cell.batch_size, epoch)
        best, place = self._known.cost_to_beat(incumbent), outlook.cells.index(cell)
        saving, price, _ = self._worth(best, outlook, place, stages, epoch)
        if saving > price:
            return Continue()
        return Stop(StopCause.COST, "finishing it is expected to cost more than it saves")

    def _cheapest(
        self, outlook: Outlook, record: TrialRecord, going: Going, seen: Chances
    ) -> Decision:
        """Goes on, with the best workers, or begins afresh, whichever is expected to cost less.

        Both meet the same epochs: what a failure costs is what a fresh run costs now, and more
        the more epochs that failure shows to be needed.
        """
        known, anew, fresh = self._known, self.outlook(self.new_recipe), self.fresh(self.new_recipe)
        anew_cost = float(fresh.costs.min()) * OPTIMISM ** (known.tally.given_up + 1)
        on, place = outlook.step(
            record.allocation.batch_size,
            penalty=anew_cost,
            epoch=record.run[-1].epoch,
            seconds_left=outlook.limit - record.run_seconds,
            going=going,
        )
        if on > NEAR * anew.least:
            if not fresh.has_hope:
                return guarded(seen, going) or Continue()
            if anew_cost < SAVES * on:
                unit = known.cost.unit
                why = f"going on is expected to cost {on:.3g} {unit}, a fresh run elsewhere "
                return Stop(StopCause.COST, f"{why}{anew_cost:.3g}")
        workers = outlook.cells[place].workers
        if workers == going.workers:
            return Continue()
        # Who may as well give up buys no cheaper workers to be late on.
        if on > SAVES * anew_cost and seen.of(workers) < seen.of(going.workers):
            return Continue()
        return Resize(workers, "the target is expected to cost less there")


def _lasting(stages: Floats, afresh: Floats) -> Floats:
    """Returns the epochs that later runs need where this one reaches the target at a stage.

    One that needs few was partly lucky: later ones come back towards what was expected before
    it began, not towards what is left of that by now.

    Args:
        stages: Epochs, shape (k,).
        afresh: Its stages as if it had not begun, any number.
    """
    mean, variance = float(np.log(afresh).mean()), float(np.log(afresh).var())
    kept = max(1 - LUCK * RUN_SD**2 / variance, 0.0) if variance > 0 else 0.0
    return np.asarray(np.exp(mean + kept * (np.log(stages) - mean)), dtype=np.float64)

"""A sweep played through on drawn surfaces, from where it stands to its end."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from raycosttune.core.cost import CostMetric
from raycosttune.core.decision import Answer, Decision, Resize, Run, Stop
from raycosttune.core.goal import Goal
from raycosttune.core.held import present, resized
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import Free
from raycosttune.core.observation import (
    EndCause,
    Ended,
    Observation,
    Recipe,
    Report,
    TrialRecord,
    recipe_key,
)
from raycosttune.core.outcome import TIME_SD
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.proposer import Scored
from raycosttune.core.space import Allocation, Space

MOST_TRIALS = 40
MOST_REPORTS = 100
REPORTS = 12
EPOCH_STEPS = 100  # of the largest batch, while nothing has shown how many samples there are
RECIPE_SD = 0.5


class Sweep(Protocol):
    """Is what a rehearsal needs of a session; see Session."""

    space: Space
    goal: Goal
    cost: CostMetric
    max_concurrent: int | None
    records: dict[str, TrialRecord]

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """Asks for a trial."""

    def tell(self, trial_id: str, observation: Observation) -> bool:
        """Tells what a trial showed."""

    def tell_profile(self, trial_id: str, profiled: Profiled) -> bool:
        """Tells what a profile showed."""

    def decide(self, trial_id: str) -> Decision:
        """Asks whether a trial goes on."""

    @property
    def known(self) -> Knowledge:
        """What the records say."""

    @property
    def live(self) -> list[TrialRecord]:
        """The trials that may still report."""

    @property
    def live_profiles(self) -> list[ProfileRecord]:
        """The profiles that run."""

    @property
    def spent(self) -> float:
        """Cost so far."""

    @property
    def elapsed_seconds(self) -> float:
        """Wall time so far."""


class Clock:
    """Moves only as a rehearsed trial trains, one trial after the other."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Returns the seconds rehearsed so far."""
        return self.seconds


class NumberedRecipes:
    """Proposes recipes that are only told apart, as many as are asked for."""

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:  # noqa: ARG002 - Protocol
        """Returns a recipe that holds its number."""
        return {"recipe": index}


class Surface(Protocol):
    """Is a training job as it may turn out to be."""

    def epochs(self, cell: Allocation, recipe: Recipe) -> float:
        """Returns the epochs to the target."""

    def epoch_seconds(self, cell: Allocation, recipe: Recipe | None = None) -> float:
        """Returns the seconds of an epoch, with a recipe not known where it is None."""

    def startup_seconds(self, cell: Allocation) -> float:
        """Returns the seconds before the first step."""


class PriorSurface:
    """Is drawn while nothing is measured.

    Its fastest cell needs between a fifth and six fifths of the deadline, so that some jobs
    miss it with every recipe or but the best.
    """

    def __init__(self, space: Space, goal: Goal, rng: np.random.Generator) -> None:
        batches = [cell.batch_size for cell in space.cells]
        self._noise_scale = np.exp(rng.uniform(np.log(min(batches) / 2), np.log(max(batches) * 2)))
        self._step, self._base = rng.uniform(1, 16), rng.uniform(8, 30)
        self._factors: dict[str, float] = {}
        self._rng = rng
        self._scale = 1.0
        fastest = min(self.epochs(cell, {}) * self.epoch_seconds(cell) for cell in space.cells)
        self._scale = (goal.deadline_seconds or 1.0) * rng.uniform(0.2, 1.2) / fastest

    def epochs(self, cell: Allocation, recipe: Recipe) -> float:
        """See Surface.epochs."""
        key = recipe_key(recipe)
        if key not in self._factors:
            self._factors[key] = np.exp(self._rng.normal(0, RECIPE_SD)) if recipe else 1.0
        return float(self._base * (1 + cell.batch_size / self._noise_scale) * self._factors[key])

    def epoch_seconds(self, cell: Allocation, recipe: Recipe | None = None) -> float:  # noqa: ARG002 - Protocol
        """See Surface.epoch_seconds."""
        return float(self._scale * (1 / cell.workers + self._step / cell.batch_size))

    def startup_seconds(self, cell: Allocation) -> float:  # noqa: ARG002 - Protocol
        """See Surface.startup_seconds."""
        return 0.0


class LearnedSurface:
    """Is drawn from what the records say, epochs timed in at least one cell."""

    def __init__(self, known: Knowledge, rng: np.random.Generator) -> None:
        self._known = known
        self._deviation = rng.normal()
        self._quantiles: dict[str, float] = {}
        self._rng = rng

    def epochs(self, cell: Allocation, recipe: Recipe) -> float:
        """See Surface.epochs."""
        key = recipe_key(recipe)
        quantile = self._quantiles.setdefault(key, self._rng.uniform())
        tried = key if key in self._known.recipes else None
        samples = self._known.accuracy.samples(tried, cell.batch_size)
        order = np.argsort(samples.epochs)
        place = int(np.searchsorted(np.cumsum(samples.weights[order]), quantile))
        return float(samples.epochs[order[min(place, len(order) - 1)]])

    def epoch_seconds(self, cell: Allocation, recipe: Recipe | None = None) -> float:
        """See Surface.epoch_seconds."""
        time = self._known.time_of(None if recipe is None else recipe_key(recipe))
        known = time.predict(cell)
        if time.is_measured(cell):
            return known.mid
        sd = min(TIME_SD, np.log(known.high / known.low) / 4)
        return float(np.clip(known.mid * np.exp(sd * self._deviation), known.low, known.high))

    def startup_seconds(self, cell: Allocation) -> float:
        """See Surface.startup_seconds."""
        return self._known.startup.predict(cell).mid


def rehearse(sweep: Sweep, surface: Surface, clock: Clock) -> tuple[int, float]:
    """Plays a sweep through: what runs is finished first, then one trial after the other.

    Args:
        sweep: A copy of the sweep, which is used up.
        surface: The job.
        clock: The copy's clock.

    Returns:
        How many trials and profiles it started, and what it has spent at the end.
    """
    for profiling in sweep.live_profiles:
        _time(sweep, profiling.trial_id, profiling.profile, surface, clock)
    for record in sweep.live:
        _train(sweep, record, surface, clock)
    for count in range(MOST_TRIALS):
        match sweep.ask(trial_name(count)):
            case Run():
                _train(sweep, sweep.records[trial_name(count)], surface, clock)
            case Profile() as profile:
                _time(sweep, trial_name(count), profile, surface, clock)
            case _:
                return count, sweep.spent
    return MOST_TRIALS, sweep.spent


def trial_name(number: int) -> str:
    """Returns the id of a rehearsed trial, which no trial of Tune's has."""
    return f"rehearsed {number}"


def _time(sweep: Sweep, trial_id: str, profile: Profile, surface: Surface, clock: Clock) -> None:
    """Tells a session what a profile shows."""
    largest = max(cell.batch_size for cell in sweep.space.cells)
    samples = sweep.known.samples_per_epoch or EPOCH_STEPS * largest
    timed = {cell: surface.epoch_seconds(cell, profile.recipe) for cell in profile.cells}
    steps = sum(s * cell.batch_size / samples for cell, s in timed.items())
    startup = surface.startup_seconds(profile.held)
    seconds = startup + profile.steps * steps
    clock.seconds += seconds
    sweep.tell_profile(trial_id, Profiled(timed, seconds, startup))


def _train(sweep: Sweep, record: TrialRecord, surface: Surface, clock: Clock) -> None:
    """Reports about a dozen evaluations to a session, until it stops the trial."""
    goal, cell, done = sweep.goal, present(record, sweep.space), record.epoch
    if cell in sweep.space.cells:  # not so where the cluster has shrunk
        startup = 0.0 if record.reports else surface.startup_seconds(cell)
        attempt = record.reports[-1].attempt if record.reports else 1
        needed = max(surface.epochs(cell, record.recipe), done)
        period = max((needed - done) / REPORTS, needed / MOST_REPORTS, 1e-3)
        for k in range(1, MOST_REPORTS):
            epoch, each = done + k * period, surface.epoch_seconds(cell, record.recipe)
            seconds = period * each + startup
            value = goal.target if epoch >= needed * (1 - 1e-9) else goal.target - goal.sign
            clock.seconds += seconds
            saved, workers = record.trial_id, cell.workers
            report = Report(epoch, value, seconds, startup, attempt, saved, workers)
            sweep.tell(record.trial_id, report)
            decision, startup = sweep.decide(record.trial_id), 0.0
            if isinstance(decision, Stop):
                break
            if isinstance(decision, Resize):
                cell = resized(sweep.space, cell, decision.workers)
                startup, attempt = surface.startup_seconds(cell), attempt + 1
    sweep.tell(record.trial_id, Ended(EndCause.STOPPED))

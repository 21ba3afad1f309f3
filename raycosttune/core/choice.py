"""What to run next, or why nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raycosttune.core.certificate import certify
from raycosttune.core.class_pace import scores
from raycosttune.core.decision import Finished, Wait
from raycosttune.core.experiment import Experiment, first_experiments, worthwhile_experiments
from raycosttune.core.figure import counted, of_type
from raycosttune.core.history import History
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.observation import Recipe, recipe_key
from raycosttune.core.planner import Planner
from raycosttune.core.profile import Profile
from raycosttune.core.proposer import NoHyperparameters, Proposer, Scored
from raycosttune.core.space import Allocation
from raycosttune.errors import RayCostTuneError

PROPOSALS = 8


@dataclass(frozen=True)
class Start:
    """Is a run to start, and the recipe that it gets."""

    experiment: Experiment
    recipe: Recipe


def experiments(
    known: Knowledge, proposer: Proposer, planner: Planner | None = None
) -> list[Experiment]:
    """Ranks the runs worth making, best first; empty where the search is over."""
    return [] if is_over(known) else ranking(known, proposer, planner)


def ranking(
    known: Knowledge, proposer: Proposer, planner: Planner | None = None
) -> list[Experiment]:
    """Ranks the runs worth making in a search that is not over, best first."""
    recipes = has_recipes(proposer)
    incumbent = known.incumbent
    if incumbent is None:
        return planner.first_runs() if planner else first_experiments(known, recipes=recipes)
    if planner:
        return planner.further_runs(incumbent)
    return worthwhile_experiments(known, incumbent, recipes=recipes)


def still_open(
    known: Knowledge, ranked: Sequence[Experiment], places: Sequence[int]
) -> list[Experiment]:
    """Returns of runs that were ranked before those whose cell and recipe were not tried since.

    Args:
        known: What the records say.
        ranked: The runs.
        places: Places of their cells in the space.
    """
    recipes, keys = known.tally.recipes, {run.recipe for run in ranked}
    tried = {key: recipes[key].tried if key in recipes else () for key in keys}
    pairs = zip(ranked, places, strict=True)
    return [run for run, place in pairs if place not in tried[run.recipe]]


def has_recipes(proposer: Proposer) -> bool:
    """Tells whether anything is proposed beside workers and batch."""
    return not isinstance(proposer, NoHyperparameters)


def is_over(known: Knowledge) -> bool:
    """Tells whether the target is reached and nothing more can save anything worth while."""
    is_reached = known.incumbent is not None
    return is_reached and (known.remaining_runs == 0 or is_certified(known))


def is_certified(known: Knowledge) -> bool:
    """Tells whether nothing untried can save more than the goal's tolerance."""
    incumbent = known.incumbent
    return incumbent is not None and certify(known, incumbent).gap <= known.goal.tolerance


def nothing_left(known: Knowledge) -> str:
    """Says why no run is worth making."""
    if known.incumbent is None:
        return f"no untried configuration can be expected to reach the target{_within(known)}"
    if known.remaining_runs == 0:
        return "the target is reached and no further run is planned"
    if is_certified(known):
        within = f"within the tolerance of {known.goal.tolerance:.0%}"
        return f"{certify(known, known.incumbent).saving}, {within}"
    beside = " beside what the running ones may find" if known.live else ""
    return f"no further trial pays for itself{_within(known)}{beside}"


def _within(known: Knowledge) -> str:
    """Names every limit of a run and of the sweep, nothing where there is none."""
    goal, unit = known.goal, known.cost.unit
    run, sweep = goal.deadline_seconds, goal.sweep_deadline_seconds
    limits = [
        *([] if run is None else [f"{run:g} s a run"]),
        *([] if goal.max_epochs is None else [counted(goal.max_epochs, "epoch")]),
        *map(str, goal.constraints),
        *([] if sweep is None else [f"{sweep:g} s for the sweep"]),
        *([] if goal.sweep_budget is None else [f"{goal.sweep_budget:g} {unit} for the sweep"]),
    ]
    return f" within the limits ({', '.join(limits)})" if limits else ""


def crowd(known: Knowledge, max_concurrent: int | None) -> str:
    """Says that as many trials run as may, or nothing; one is the most before a success."""
    live, limit = len(known.live), max_concurrent
    if known.incumbent is None and limit is None:
        limit = 1
    return f"{live} trials run" if live and limit is not None and live >= limit else ""


def choose(
    known: Knowledge,
    choices: Sequence[Experiment],
    proposer: Proposer,
    free_workers: Free,
) -> Start | Wait | Finished:
    """Chooses among ranked runs; waits only while a trial runs that may free what it needs.

    Args:
        known: What the records say.
        choices: What the sweep can afford, best first.
        proposer: Proposes the other hyperparameters.
        free_workers: Workers that the cluster can hold beside the running trials, by type of
            machine where there are several.
    """
    is_busy = bool(known.live)

    def fits(cell: Allocation) -> bool:
        return cell.workers <= free_of(free_workers, cell.node_type)

    if is_busy and choices and not fits(first := choices[0].allocation):
        wanted = f"{counted(first.workers, 'worker')}{of_type(first.node_type)}"
        return Wait(f"{wanted} {'is' if first.workers == 1 else 'are'} not free")
    is_any = any(fits(choice.allocation) for choice in choices)
    for choice in choices:
        if is_any and not fits(choice.allocation):
            continue
        recipe = choose_recipe(known, choice, proposer)
        if recipe is not None:
            return Start(choice, recipe)
    reason = nothing_left(known)
    return Wait(reason) if is_busy else Finished(reason)


def choose_recipe(known: Knowledge, experiment: Experiment, proposer: Proposer) -> Recipe | None:
    """Returns the recipe of an experiment, or None where every proposal was tried before."""
    if (before := known.tally.recipes.get(str(experiment.recipe))) is not None:
        return before.recipe
    each = zip(known.accuracy.recipes, scores(known), strict=True)
    scored = [Scored(known.recipes[key], score) for key, score in each]
    if experiment.fixed is not None:
        return proposer.propose(len(known.records), scored) | experiment.fixed
    for index in range(len(known.records), len(known.records) + PROPOSALS):
        recipe = proposer.propose(index, scored)
        history = known.tally.recipes.get(recipe_key(recipe))
        if history is None or _is_open(known, experiment, history):
            return recipe
    return None


def with_recipe(known: Knowledge, profile: Profile, proposer: Proposer) -> Profile:
    """Returns a profile with the recipe to time it with, where recipes affect epoch times."""
    if not known.space.affects_time:
        return profile
    return replace(profile, recipe=profile_recipe(known, profile, proposer))


def profile_recipe(known: Knowledge, profile: Profile, proposer: Proposer | None) -> Recipe:
    """Returns the recipe to time steps with: the best one, before that the next one to be run.

    Raises:
        RayCostTuneError: If the proposer fails before the first run.
    """
    proposer = proposer or NoHyperparameters()
    run = Experiment(profile.held, None, 0.0, 0.0, 0.0, "")
    try:
        if known.incumbent is not None:
            return known.incumbent.record.recipe
        return choose_recipe(known, run, proposer) or proposer.propose(0, ())
    except RayCostTuneError:
        if not known.records:
            raise
        return known.records[-1].recipe


def _is_open(known: Knowledge, experiment: Experiment, history: History) -> bool:
    """Tells whether a known recipe may still be what reaches the target in a cell."""
    place = known.grid.index[experiment.allocation]
    return known.incumbent is None and place not in history.tried

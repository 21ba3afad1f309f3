"""What to run next, or why nothing."""

from raycosttune.core.certificate import certify
from raycosttune.core.experiment import Experiment, first_experiments, worthwhile_experiments
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import NoHyperparameters, Proposer, Scored, recipe_key

PROPOSALS = 8


def experiments(known: Knowledge, proposer: Proposer) -> list[Experiment]:
    """Ranks the runs worth making, best first; empty where the search is over."""
    recipes = not isinstance(proposer, NoHyperparameters)
    incumbent = known.incumbent
    if incumbent is None:
        return first_experiments(known, recipes=recipes)
    if known.remaining_runs == 0 or is_certified(known):
        return []
    return worthwhile_experiments(known, incumbent, recipes=recipes)


def is_certified(known: Knowledge) -> bool:
    """Tells whether nothing untried can save more than the goal's tolerance."""
    incumbent = known.incumbent
    return incumbent is not None and certify(known, incumbent).gap <= known.goal.tolerance


def nothing_left(known: Knowledge) -> str:
    """Says why no run is worth making."""
    if known.incumbent is None:
        return "no untried configuration can be expected to reach the target within the limits"
    if known.remaining_runs == 0:
        return "the target is reached and no further run is planned"
    if is_certified(known):
        return f"nothing untried can save more than {known.goal.tolerance:.0%}"
    return "no further trial pays for itself within the limits"


def choose_recipe(known: Knowledge, experiment: Experiment, proposer: Proposer) -> Recipe | None:
    """Returns the recipe of an experiment, or None where every proposal was tried before."""
    if experiment.recipe in known.recipes:
        return known.recipes[experiment.recipe]
    scored = [
        Scored(known.recipes[key], known.accuracy.score(key)) for key in known.accuracy.recipes
    ]
    for index in range(len(known.records), len(known.records) + PROPOSALS):
        recipe = proposer.propose(index, scored)
        if recipe_key(recipe) not in known.recipes or _is_open(known, experiment, recipe):
            return recipe
    return None


def _is_open(known: Knowledge, experiment: Experiment, recipe: Recipe) -> bool:
    """Tells whether a known recipe may still be what reaches the target in a cell."""
    return known.incumbent is None and not any(
        record.allocation == experiment.allocation
        and recipe_key(record.recipe) == recipe_key(recipe)
        and (record.reports or record.is_live)
        for record in known.records
    )

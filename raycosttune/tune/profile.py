"""Profiles as trials of Tune: which records are of a space, and the configs of profiles."""

from raycosttune.core.choice import choose_recipe
from raycosttune.core.experiment import Experiment
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import Recipe, TrialRecord
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.proposer import NoHyperparameters, Proposer
from raycosttune.core.space import Space
from raycosttune.errors import RayCostTuneError
from raycosttune.train.keys import PROFILE
from raycosttune.tune.convert import Config, ParamSpace


def holds(params: ParamSpace, record: TrialRecord | ProfileRecord) -> bool:
    """Tells whether a trial or a profile can be of a search space."""
    if isinstance(record, TrialRecord):
        return params.holds(record.allocation, record.recipe)
    any_recipe = dict.fromkeys(params.domains)
    return all(params.holds(cell, any_recipe) for cell in record.profile.cells)


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


def profile_config(
    params: ParamSpace,
    space: Space,
    profile: Profile,
    recipe: Recipe,
    learning_rate: LearningRate | None,
) -> Config:
    """Returns the searched values of a profile's trial.

    They are those of a run in the cell with the most workers, and under `PROFILE` the steps and
    those of a run in each cell.
    """
    runs = {}
    for cell in profile.cells:
        own = learning_rate.apply(recipe, cell.batch_size) if learning_rate else recipe
        batch = space.user_batch(cell)
        runs[cell] = params.config(cell.workers, batch, own, cell.node_type)
    cells = [{**cell.data(), "config": config} for cell, config in runs.items()]
    return {**runs[profile.held], PROFILE: {"steps": profile.steps, "cells": cells}}

"""Profiles as trials of Tune: which records are of a space, and the configs of profiles."""

from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import Recipe, TrialRecord
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.space import Space
from raycosttune.train.keys import PROFILE
from raycosttune.tune.convert import Config, ParamSpace


def holds(params: ParamSpace, record: TrialRecord | ProfileRecord) -> bool:
    """Tells whether a trial or a profile can be of a search space."""
    if isinstance(record, TrialRecord):
        return params.holds(record.allocation, record.recipe)
    any_recipe = dict.fromkeys(params.domains)
    return all(params.holds(cell, any_recipe) for cell in record.profile.cells)


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

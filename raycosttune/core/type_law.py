"""The law of epoch time on several types of machine: numbers of its own for each, and shared."""

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.step_model import PRIOR_SD, Free, Law, StepModel

# How far the numbers of two types of machine lie apart. Speed by a factor of 2.2 from what their
# prices say; step costs and exchanges, which are in units of a type's own compute, by 2.7; how an
# exchange grows is the job's and the network's.
BETWEEN_SD = np.array(
    Free(
        scale=0.8,
        step=1.0,
        sync=1.0,
        more=0.2,
        jump=0.5,
        farther=0.2,
        overlap=0.5,
        epoch=1.0,
    )
)
SHARED = 1 - BETWEEN_SD**2 / (2 * PRIOR_SD**2)  # correlation of each number between two types
SHARED_MISFIT = 0.5  # what the law misses is half the job's, half the machine's


def law_of(model: StepModel, types: Ints, free: Floats) -> Law:
    """Returns the law over some cells, each by the numbers of its type.

    Args:
        model: The cells.
        types: Places of their types, shape (cells,).
        free: Numbers of the law, shape (types, 8).
    """
    if len(free) == 1:
        return model.law(free[0])
    law = Law(np.empty(len(types)), np.empty((len(types), free.shape[1])))
    for k, own in enumerate(free):
        at = np.flatnonzero(types == k)
        law.values[at], law.slopes[at] = model.at(at).law(own)
    return law


def along(law: Law, types: Ints, change: Floats) -> Floats:
    """Returns by how much a change of the numbers, shape (types, 8), moves the law's values."""
    if len(change) == 1:
        return np.asarray(law.slopes @ change[0], dtype=np.float64)
    return np.asarray((law.slopes * change[types]).sum(axis=1), dtype=np.float64)


def tied_covariance(one: Law, other: Law, alike: Floats | None) -> Floats:
    """Returns the covariance of two sets of cells by the numbers of the law.

    Args:
        one: The law over some cells.
        other: The law over some others.
        alike: 1 for two cells of one type, else 0, shape (cells, others); None where all are.
    """
    own = (one.slopes * PRIOR_SD**2) @ other.slopes.T
    if alike is None:
        return np.asarray(own, dtype=np.float64)
    shared = (one.slopes * (SHARED * PRIOR_SD**2)) @ other.slopes.T
    return np.asarray(np.where(alike > 0, own, shared), dtype=np.float64)


def pulled(law: Law, types: Ints, pull: Floats, count: int) -> Floats:
    """Returns how some cells move the numbers of every type, shape (count, 8).

    Args:
        law: The law over the cells.
        types: Places of their types, shape (cells,).
        pull: How much each cell pulls, shape (cells,).
        count: How many types there are.
    """
    moved = np.empty((count, len(PRIOR_SD)))
    for k in range(count):
        is_own = types == k
        own, others = law.slopes.T @ (pull * is_own), law.slopes.T @ (pull * ~is_own)
        moved[k] = PRIOR_SD**2 * (own + SHARED * others)
    return moved

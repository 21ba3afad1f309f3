"""How to run one batch to the target for the least expected cost: a dynamic program."""

import math
from dataclasses import dataclass

import numpy as np

from raycosttune.core.isotonic import Floats

TIME_STEPS = 48
MARGIN = 0.995
INDIFFERENT = 0.005
FIRMER = 0.02  # what each change of workers before adds to it


@dataclass(frozen=True)
class Choices:
    """Is what a run at one batch can be run on.

    Attributes:
        seconds: Seconds of an epoch for each worker count, shape (n,).
        rates: Cost of a second, shape (n,).
        startups: Seconds of a start, shape (n,).
        can_resize: Whether a run may change its workers.
        lost: Epochs that a change would repeat now.
        changes: How often the workers have changed.
    """

    seconds: Floats
    rates: Floats
    startups: Floats
    can_resize: bool
    lost: float = 0.0
    changes: int = 0


@dataclass(frozen=True)
class Step:
    """Is the best next step.

    Attributes:
        cost: Expected cost from here on, a failure's included.
        place: Place of the worker count to go on with.
    """

    cost: float
    place: int


def best_step(
    choices: Choices,
    stages: Floats,
    failing: Floats,
    *,
    seconds_left: float,
    epoch: float = 0.0,
    place: int | None = None,
) -> Step:
    """Plans a run backwards over its stages and the time left.

    Between two stages the run goes on with the workers that are best for what follows, or,
    where it may, is given up for `failing`. The stages are reached with equal chance, so the
    later ones are the likelier the longer it takes.

    Args:
        choices: Worker counts to run on.
        stages: Epochs at which the target may be reached, shape (k,), rising.
        failing: Expected cost of what follows a failure in each stage, shape (k,).
        seconds_left: Seconds until the deadline, infinite without one.
        epoch: Epochs done.
        place: Place of the present worker count, None before the start.

    Returns:
        The step.
    """
    steps = len(stages)
    epochs = np.diff(np.concatenate([[epoch], stages]))
    chance = 1 / (steps - np.arange(steps))
    left = _grid(seconds_left)
    after = np.zeros((len(left), len(choices.rates)))
    moving = choices.can_resize and bool(choices.startups.max() > 0)

    def go_on(k: int, seconds: Floats) -> Floats:
        cost = seconds * choices.rates
        ahead = (1 - chance[k]) * _ahead(after, left, seconds)
        in_time = left[:, None] >= seconds
        return np.asarray(cost + np.where(in_time, ahead, failing[k]), dtype=np.float64)

    for k in range(steps - 1, 0, -1):
        training = epochs[k] * choices.seconds
        best = go_on(k, training)
        if moving:
            moved = go_on(k, training + choices.startups).min(axis=1, keepdims=True)
            best = np.minimum(best, moved)
        elif choices.can_resize:
            best = np.broadcast_to(best.min(axis=1, keepdims=True), best.shape)
        after = np.minimum(best, failing[k])
    training = epochs[0] * choices.seconds
    repeated = choices.lost * choices.seconds
    costs = go_on(0, training + choices.startups + repeated)[-1].copy()
    if place is None:
        chosen = int(np.argmin(costs))
        return Step(float(costs[chosen]), chosen)
    stay = float(go_on(0, training)[-1, place])
    costs[place] = stay
    chosen = int(np.argmin(costs)) if choices.can_resize else place
    if stay <= costs[chosen] * (1 + INDIFFERENT + FIRMER * choices.changes):
        chosen = place
    return Step(float(costs[chosen]), chosen)


def _grid(seconds_left: float) -> Floats:
    if math.isinf(seconds_left):
        return np.array([math.inf])
    return np.linspace(0, max(seconds_left * MARGIN, 1e-9), TIME_STEPS)


def _ahead(after: Floats, left: Floats, seconds: Floats) -> Floats:
    """Interpolates what follows once the seconds have passed, shape of `after`."""
    if len(left) == 1:
        return after
    place = np.clip((left[:, None] - seconds) / left[1], 0, len(left) - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, len(left) - 1)
    part, column = place - below, np.arange(after.shape[1])
    mixed = after[below, column] * (1 - part) + after[above, column] * part
    return np.asarray(mixed, dtype=np.float64)

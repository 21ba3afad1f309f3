"""How to run one batch to the target for the least expected cost: a dynamic program."""

import math
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.gaussian import below
from raycosttune.core.step_model import Bools

TIME_STEPS = 48
MARGIN = 0.995
INDIFFERENT = 0.005
FIRMER = 0.02  # what each change of workers before adds to it
LEAST_SD = 1e-9


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
        sd: Deviation of the log of the seconds from now to each stage, shape (k, n) or one that
            spreads to it.
    """

    seconds: Floats
    rates: Floats
    startups: Floats
    can_resize: bool
    lost: float = 0.0
    changes: int = 0
    sd: Floats | float = 0.0


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
    later ones are the likelier the longer it takes. Where the seconds are uncertain, a target
    reached shortly before the deadline may have come too late, and has failed then.

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
    moving = choices.can_resize and bool(choices.startups.max() > 0)
    # Who may change the workers at no charge goes on alike from all of them.
    is_one = choices.can_resize and not moving
    after = np.zeros((len(left), 1 if is_one else len(choices.rates)))

    def going_on(k: int, passing: _Passing) -> Floats:
        on = np.where(passing.in_time, passing.ahead(after), failing[k])
        paid = (1 - chance[k]) * on + chance[k] * passing.late * failing[k]
        return np.asarray(passing.seconds * choices.rates + paid, dtype=np.float64)

    training = epochs[:, None] * choices.seconds
    sd = np.broadcast_to(choices.sd, training.shape)
    staying = _passing(left, training, sd, is_one=is_one)
    starting = staying
    if moving:
        starting = _passing(left, training + choices.startups, sd, is_one=is_one)
    for k in range(steps - 1, 0, -1):
        best = going_on(k, staying[k])
        if moving:
            best = np.minimum(best, going_on(k, starting[k]).min(axis=1, keepdims=True))
        elif choices.can_resize:
            best = best.min(axis=1, keepdims=True)
        after = np.minimum(best, failing[k])
    repeated = choices.lost * choices.seconds
    anew = training[:1] + choices.startups + repeated
    costs = going_on(0, _passing(left, anew, sd[:1], is_one=is_one)[0])[-1].copy()
    if place is None:
        chosen = int(np.argmin(costs))
        return Step(float(costs[chosen]), chosen)
    stay = float(going_on(0, staying[0])[-1, place])
    costs[place] = stay
    chosen = int(np.argmin(costs)) if choices.can_resize else place
    if stay <= costs[chosen] * (1 + INDIFFERENT + FIRMER * choices.changes):
        chosen = place
    return Step(float(costs[chosen]), chosen)


def _grid(seconds_left: float) -> Floats:
    if math.isinf(seconds_left):
        return np.array([math.inf])
    return np.linspace(0, max(seconds_left * MARGIN, 1e-9), TIME_STEPS)


@dataclass(frozen=True)
class _Passing:
    """Is what passes of the time left while a run goes on to its next stage.

    Attributes:
        seconds: What each worker count takes, shape (n,).
        in_time: Whether so much is left, shape (t, n).
        late: Chance that a target reached then comes too late, shape (t, n).
        between: Where time is limited: places in the raveled table of the points of time before
            and after, and how far it is between them, each of shape (t, n).
    """

    seconds: Floats
    in_time: Bools
    late: Floats
    between: tuple[Ints, Ints, Floats] | None = None

    def ahead(self, after: Floats) -> Floats:
        """Interpolates what follows, shape (t, n), once the seconds have passed."""
        if self.between is None:
            return after
        below, above, part = self.between
        before, later = after.ravel()[below], after.ravel()[above]
        return np.asarray(before * (1 - part) + later * part, dtype=np.float64)


def _passing(left: Floats, seconds: Floats, sd: Floats, *, is_one: bool) -> list[_Passing]:
    """Works out what passes for all stages at once, as that does not hang on the costs.

    Args:
        left: The points of time, shape (t,).
        seconds: What each stage takes, shape (k, n).
        sd: Deviation of the log of the seconds from the start to each stage, shape (k, n).
        is_one: Whether what follows is the same for all worker counts.
    """
    in_time = left[:, None] >= seconds[:, None, :]
    if len(left) == 1:
        return [_Passing(*row) for row in zip(seconds, in_time, ~in_time * 1.0, strict=True)]
    used = np.maximum(left[-1] - left[:, None] + seconds[:, None, :], LEAST_SD)
    late = below(np.log(used / left[-1]) / np.maximum(sd[:, None, :], LEAST_SD))
    place = (left[:, None] - seconds[:, None, :]) / left[1]
    place = np.minimum(np.maximum(place, 0.0), len(left) - 1.0)
    before = place.astype(np.int64)
    part = place - before
    after = np.minimum(before + 1, len(left) - 1)
    if not is_one:
        count = seconds.shape[1]
        before, after = (at * count + np.arange(count) for at in (before, after))
    between = zip(before, after, part, strict=True)
    return [_Passing(*row) for row in zip(seconds, in_time, late, between, strict=True)]

"""Compute seconds of each worker against its share, as far as they are known."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.rebalance_drift import DRIFTS, Wander
from raycosttune.core.rebalance_evidence import NOISE, Terms, estimate_noise
from raycosttune.core.rebalance_group import grouped, memberships

ELASTICITY = 0.85  # d log seconds / d log share: 1 in proportion, 0 constant
LEVEL_SD = 1.0  # of the log seconds of workers
REACH = 0.7  # local elasticities so far apart in log share share 1/e of their deviation
# Deviations of the elasticity as a whole and locally, and the prior probability, of laws
# that keep to the rule (rising, but not faster than the share) and of those that break it.
OVERALL_SD, LOCAL_SD = np.array([0.2, 0.4]), np.array([0.2, 0.8])
ODDS = np.log([0.9, 0.1])
WANDERS = -2.0  # log prior odds that speeds wander
ROUNDS = 3  # between the oldest and the newest sample, before which no drift shows
APART = 0.12  # knots are at least so far apart in log share
MOST_KNOTS = 12
SAME = 0.04  # log shares that differ less say nothing of the elasticity
JITTER = 1e-10


@dataclass(frozen=True)
class Timings:
    """Holds samples of workers, at least one.

    Attributes:
        workers: Number of each sample's worker, shape (m,).
        log_shares: Shape (m,).
        log_seconds: Of one step, shape (m,).
        ages: Rounds since, shape (m,).
    """

    workers: Ints
    log_shares: Floats
    log_seconds: Floats
    ages: Floats


@dataclass(frozen=True)
class WorkerTimes:
    """Says the log seconds of n workers at k knots, linear in between.

    Attributes:
        knots: Log shares, shape (k,), rising.
        mean: Shape (n, k).
        sd: Shape (n, k).
        least_noise: Deviation of log seconds that a sample certainly has.
    """

    knots: Floats
    mean: Floats
    sd: Floats
    least_noise: float


def fit_times(
    timings: Timings, among: int, ends: tuple[float, float], alone: Collection[int] = ()
) -> WorkerTimes:
    """Fits a law to each worker.

    The prior of log seconds is a line in log share whose slope varies, in two temperaments.
    While all shares measured are the same, seconds are expected in proportion to the share.
    Workers are joined in groups by evidence, and each has the mean of the laws of the groups
    and of one of its own, as probable as they are; without samples that is the mean worker.
    Where the samples show that speeds wander, each law is moved to where its worker is now.

    Args:
        timings: What was measured.
        among: Number of workers.
        ends: Log of the least and the most that a share may be.
        alone: Workers that are like no other now.
    """
    share, seconds = timings.log_shares, timings.log_seconds
    knots = place_knots(share, ends)
    centre = int(np.argmin(np.abs(knots - np.median(share))))
    slope = ELASTICITY if np.ptp(share) > SAME else 1.0
    level = np.median(seconds - slope * (share - knots[centre]))
    prior = level + slope * (knots - knots[centre])
    roots, hats = _roots(knots, centre), _hats(share, knots)
    features = np.swapaxes(hats @ roots, 0, 1)
    wander, terms = _wandering(timings, among, features, seconds - hats @ prior)
    own, _ = terms.posterior(NOISE**2, ODDS, roots)
    order = [int(w) for w in np.argsort(own[:, centre], kind="stable") if w not in alone]
    groups = grouped(terms, order, estimate_noise(terms, ODDS).deviation ** 2, ODDS)
    noise = estimate_noise(terms.joined([*groups, *([w] for w in alone)]), ODDS)
    chances, joint = memberships(terms, groups, noise.deviation**2, ODDS, alone)
    means, variances = joint.posterior(noise.deviation**2, ODDS, roots)
    mean = (chances[..., None] * means).sum(axis=1)
    between = (means - mean[:, None]) ** 2
    sd = np.sqrt((chances[..., None] * (variances + between)).sum(axis=1))
    law = prior + mean
    moved = wander.now(seconds - (hats * law[timings.workers]).sum(axis=1))
    return WorkerTimes(knots, law + moved[:, None], sd, noise.least)


def _wandering(timings: Timings, among: int, features: Floats, off: Floats) -> tuple[Wander, Terms]:
    """Returns how much speeds wander, by the evidence, and the terms of the workers then."""
    drifts = DRIFTS if np.ptp(timings.ages) >= ROUNDS else DRIFTS[:1]
    found = []
    for drift in drifts:
        wander = Wander.of(timings.workers, timings.ages, among, drift)
        white = wander.whitened(features), wander.whitened(off)
        terms = Terms.of(timings.workers, *white, among)
        score = estimate_noise(terms, ODDS).evidence - wander.log_det + WANDERS * (drift > 0)
        found.append((score, wander, terms))
    _, wander, terms = max(found, key=lambda each: each[0])
    return wander, terms


def place_knots(log_shares: Floats, ends: tuple[float, float]) -> Floats:
    """Places knots at the measured log shares that lie apart, and at both ends.

    Args:
        log_shares: Shape (m,), m at least 1.
        ends: Log of the least and the most that a share may be.

    Returns:
        Shape (k,), rising, k from 2 to about `MOST_KNOTS`.
    """
    low, high = min(ends[0], log_shares.min()), max(ends[1], log_shares.max())
    gap = max(APART, np.ptp(log_shares) / MOST_KNOTS)
    knots = [low]
    for place in (*np.unique(log_shares), high):
        if place - knots[-1] >= gap:
            knots.append(place)
    knots = [*knots[:-1], high] if len(knots) > 1 else [low, low + gap]
    return np.array(knots, dtype=np.float64)


def _hats(log_shares: Floats, knots: Floats) -> Floats:
    """Returns the weights of linear interpolation between knots, shape (m, k)."""
    return np.array([np.interp(log_shares, knots, row) for row in np.eye(len(knots))]).T


def _roots(knots: Floats, centre: int) -> Floats:
    """Returns roots of the prior covariance of log seconds, one a temperament, (2, k, k).

    Log seconds are the level at the centre and from there the integral of an elasticity
    whose deviations die out over `REACH`.
    """
    middle = (knots[1:] + knots[:-1]) / 2
    near = np.exp(-np.abs(middle[:, None] - middle) / REACH)
    slopes = (OVERALL_SD**2)[:, None, None] + (LOCAL_SD**2)[:, None, None] * near
    knot, piece = np.arange(len(knots))[:, None], np.arange(len(middle))
    between = 1.0 * ((piece >= centre) & (piece < knot)) - ((piece < centre) & (piece >= knot))
    path = between * np.diff(knots)
    covariance = LEVEL_SD**2 + path @ slopes @ path.T
    return np.asarray(np.linalg.cholesky(covariance + JITTER * np.eye(len(knots))))

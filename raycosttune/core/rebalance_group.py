"""Which workers are alike: those whose measured seconds one law explains best."""

import itertools
from collections.abc import Collection, Sequence

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.rebalance_evidence import Terms

JOIN = 3.0  # log prior odds for one law against two
ALONE = -2.0  # log prior odds of a law of its own against that of one other worker


def grouped(terms: Terms, order: Sequence[int], variance: float, odds: Floats) -> list[list[int]]:
    """Joins neighbours in speed while one law for both is more probable than two.

    Args:
        terms: Of the workers.
        order: The workers to group, by speed.
        variance: Of the noise.
        odds: Log prior probability of each temperament.
    """

    def evidence(groups: Sequence[Sequence[int]]) -> list[float]:
        return list(terms.joined(groups).evidence(variance, odds)) if groups else []

    groups = [[worker] for worker in order]
    own = evidence(groups)
    joint = evidence([one + other for one, other in itertools.pairwise(groups)])
    while joint:
        gains = [both - sum(own[k : k + 2]) for k, both in enumerate(joint)]
        best = int(np.argmax(gains))
        if gains[best] + JOIN <= 0:
            break
        groups[best : best + 2] = [groups[best] + groups[best + 1]]
        own[best : best + 2] = [joint.pop(best)]
        near = [k for k in (best - 1, best) if 0 <= k < len(joint)]
        for k, both in zip(near, evidence([groups[k] + groups[k + 1] for k in near]), strict=True):
            joint[k] = both
    return groups


def memberships(
    terms: Terms,
    groups: Sequence[Sequence[int]],
    variance: float,
    odds: Floats,
    alone: Collection[int] = (),
) -> tuple[Floats, Terms]:
    """Says how probably each worker has the law of each group, or one of its own.

    A group attracts by its other members' samples, and by their number as in the Chinese
    restaurant process.

    Args:
        terms: Of n workers.
        groups: Of g groups.
        variance: Of the noise.
        odds: Log prior probability of each temperament.
        alone: Workers that have a law of their own, and are in no group.

    Returns:
        Probabilities of shape (n, g + 1), and the terms of each worker with each group.
    """
    tables = [*map(set, groups), set[int]()]
    inside = np.array([[float(w in table) for table in tables] for w in range(len(terms.count))])
    others = Terms(
        *(
            every - inside.reshape(inside.shape + (1,) * (own.ndim - 1)) * own[:, None]
            for every, own in zip(terms.joined(tables).parts, terms.parts, strict=True)
        )
    )
    joint = Terms(*(a + own[:, None] for a, own in zip(others.parts, terms.parts, strict=True)))
    size = np.array([len(table) for table in tables]) - inside
    size[list(alone), :] = 0.0
    with np.errstate(divide="ignore"):
        prior = np.log(size)
    prior[:, -1] = ALONE
    scores = prior + joint.evidence(variance, odds) - others.evidence(variance, odds)
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)), joint

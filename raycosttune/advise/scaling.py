"""Which law of the workers fits measured steps of one global batch, and by how much.

Each law is compute / G, which G workers share, plus terms with fitted weights of at least 0:

    overhead      1: Lemma 3.1, which is Amdahl's law
    ring          bytes of a ring of G, 1, messages of that ring
    tree          messages of a tree over G, 1
    hierarchical  bytes of a ring within a node and of one over the nodes, 1, messages of the latter

A ring's bytes alone are no law of their own: compute / G + 2 w (G - 1) / G is compute less 2 w,
shared, and an overhead of 2 w. What tells it from Lemma 3.1 is its messages.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from raycosttune.advise.allreduce import Link, ring_seconds, tree_seconds
from raycosttune.advise.quantity import MOST_COUNT, count, measured, of_kind, refuse
from raycosttune.errors import InvalidAdviceError

Term = Callable[[int, int], float]  # of the workers, and of those that a node holds
PER_BYTE, PER_MESSAGE = Link(1.0), Link(1.0, latency_seconds=1.0)
FEWEST_POINTS, FEWEST_TO_JUDGE = 2, 3


def _one(_workers: int, _per_node: int) -> float:
    return 1.0


def _ring_bytes(workers: int, _per_node: int) -> float:
    return ring_seconds(1.0, workers, PER_BYTE)


def _ring_messages(workers: int, _per_node: int) -> float:
    return ring_seconds(0.0, workers, PER_MESSAGE)


def _tree(workers: int, _per_node: int) -> float:
    return tree_seconds(1.0, workers, PER_BYTE)


def _near_bytes(workers: int, per_node: int) -> float:
    return ring_seconds(1.0, min(workers, per_node), PER_BYTE)


def _far_bytes(workers: int, per_node: int) -> float:
    return ring_seconds(1.0, math.ceil(workers / per_node), PER_BYTE)


def _far_messages(workers: int, per_node: int) -> float:
    return ring_seconds(0.0, math.ceil(workers / per_node), PER_MESSAGE)


# The first terms are fitted where there are few points.
LAWS: Mapping[str, tuple[Term, ...]] = {
    "overhead": (_one,),
    "ring": (_ring_bytes, _one, _ring_messages),
    "tree": (_tree, _one),
    "hierarchical": (_near_bytes, _far_bytes, _one, _far_messages),
}


@dataclass(frozen=True)
class FittedLaw:
    """Is a law with its numbers.

    Attributes:
        name: One of `LAWS`.
        compute_seconds: Of a step on one worker.
        weights: Weight of each term: 0 where the points were too few for it, None where it is
            0 at all of them.
        workers_per_node: Workers that a node holds.
    """

    name: str
    compute_seconds: float
    weights: tuple[float | None, ...]
    workers_per_node: int

    def seconds(self, workers: int) -> float:
        """Returns the seconds of a step.

        Raises:
            InvalidAdviceError: If it needs a term that the points could not tell, such as the
                exchange across nodes from steps on one.
        """
        total = self.compute_seconds / count("workers", workers)
        for term, weight in zip(LAWS[self.name], self.weights, strict=True):
            value = term(workers, self.workers_per_node)
            if weight is None and value:
                rule = "be within what was measured: measure a step across nodes too"
                refuse("workers", rule, workers)
            total += value * (weight or 0.0)
        return total


@dataclass(frozen=True)
class JudgedLaw:
    """Is a fitted law and how far off it is.

    Attributes:
        law: Fitted to all points.
        error: Median of |predicted / measured - 1| over points that were left out of the fit.
    """

    law: FittedLaw
    error: float


def fit_law(
    name: str, step_seconds: Mapping[int, float], workers_per_node: int | None = None
) -> FittedLaw:
    """Fits a law by least squares of relative errors.

    Args:
        name: One of `LAWS`.
        step_seconds: Seconds of a step by the number of workers, at one global batch; at least
            two. As many terms are fitted as they can tell.
        workers_per_node: Workers that a node holds, None where one holds all.

    Raises:
        InvalidAdviceError: If there are fewer, or a name or number is unusable.

    >>> round(fit_law("ring", {1: 1.0, 2: 0.7}).seconds(4), 6)
    0.55
    """
    from scipy.optimize import nnls  # noqa: PLC0415 - takes a third of a second

    of_kind("a law", name, str)
    of_kind("step_seconds", step_seconds, Mapping)
    if name not in LAWS:
        refuse("a law", f"be one of {', '.join(LAWS)}", name)
    points = {count("workers", n): measured("step_seconds", s) for n, s in step_seconds.items()}
    if len(points) < FEWEST_POINTS:
        refuse("step_seconds", "hold at least two worker counts", dict(step_seconds))
    per_node = count("workers_per_node", workers_per_node or MOST_COUNT)
    seen = [term for term in LAWS[name] if any(term(n, per_node) for n in points)]
    fitted = seen[: len(points) - 1]
    rows = [
        [value / seconds for value in (1 / n, *(term(n, per_node) for term in fitted))]
        for n, seconds in points.items()
    ]
    compute, *found = (float(weight) for weight in nnls(rows, [1.0] * len(rows))[0])
    weights = dict.fromkeys(seen, 0.0) | dict(zip(fitted, found, strict=True))
    return FittedLaw(name, compute, tuple(weights.get(term) for term in LAWS[name]), per_node)


def rank_laws(
    step_seconds: Mapping[int, float], workers_per_node: int | None = None
) -> tuple[JudgedLaw, ...]:
    """Fits every law and ranks them by how well they predict points that they have not seen.

    Args:
        step_seconds: Seconds of a step by the number of workers, at one global batch; at least
            three.
        workers_per_node: Workers that a node holds, None where one holds all.

    Returns:
        The laws, the best first, of equal ones that with fewer terms. One that can predict no
        left-out point is missing.

    Raises:
        InvalidAdviceError: If there are fewer points, or a number is unusable.

    >>> rank_laws({1: 1.0, 2: 0.7, 4: 0.65, 8: 0.725})[0].law.name
    'tree'
    """
    of_kind("step_seconds", step_seconds, Mapping)
    if len(step_seconds) < FEWEST_TO_JUDGE:
        refuse("step_seconds", "hold at least three worker counts", dict(step_seconds))
    judged = []
    for name in LAWS:
        errors = list(_left_out(name, step_seconds, workers_per_node))
        if errors:
            law = fit_law(name, step_seconds, workers_per_node)
            judged.append(JudgedLaw(law, statistics.median(errors)))
    # An error of rounding alone ranks no law above a simpler one.
    return tuple(sorted(judged, key=lambda each: (round(each.error, 6), len(each.law.weights))))


def _left_out(
    name: str, step_seconds: Mapping[int, float], workers_per_node: int | None
) -> Iterator[float]:
    for workers, seconds in step_seconds.items():
        others = {n: s for n, s in step_seconds.items() if n != workers}
        law = fit_law(name, others, workers_per_node)
        with suppress(InvalidAdviceError):  # the others can't tell of this one
            yield abs(law.seconds(workers) / seconds - 1)

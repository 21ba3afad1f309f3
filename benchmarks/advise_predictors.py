"""Speed-ups of many workers, predicted from steps of one and of two."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from raycosttune.advise import (
    Link,
    StepLaw,
    fit_compute_line,
    fit_law,
    overhead_ratio,
    ring_seconds,
    speedup,
    tree_seconds,
)
from raycosttune.core.space import Allocation
from raycosttune.core.step_fit import Grid, Measured, fit

Curve = Mapping[int, float]
PER_BYTE = Link(1.0)


@dataclass(frozen=True)
class Known:
    """Is what is measured before the first prediction.

    Attributes:
        name: Job and device.
        per_node: Workers that a node holds.
        one: Seconds of a step of one worker by global batch, gradient accumulation included.
        two: The same of two workers on one node.
        one_local: Seconds of one worker by local batch.
        two_local: The same of two workers on one node.
        far_local: The same of two workers on two nodes; empty where nobody measured it.
        sync: Metered seconds of the exchange of two workers by global batch; empty likewise.
    """

    name: str
    per_node: int
    one: Curve
    two: Curve
    one_local: Curve
    two_local: Curve
    far_local: Curve
    sync: Curve


@dataclass(frozen=True)
class Target:
    """Is a step to predict: workers, the nodes they fill, the global batch."""

    workers: int
    nodes: int
    batch: int


def at(curve: Curve, local: float) -> float:
    """Returns seconds at a local batch: linear between neighbours, and beyond the smallest.

    Beyond the largest a step accumulates gradients over several parts.
    """
    sizes = sorted(curve)
    parts = math.ceil(local / sizes[-1])
    local /= parts
    k = min(max(bisect_left(sizes, local), 1), len(sizes) - 1)
    low, high = sizes[k - 1], sizes[k]
    slope = (curve[high] - curve[low]) / (high - low)
    return parts * max(curve[low] + slope * (local - low), curve[sizes[0]] * 0.1)


def lemma(known: Known, target: Target) -> float:
    """Predicts by Lemma 3.1 with the overhead that the two walls imply: Amdahl's law."""
    return _of_law("overhead", known, target)


def ring(known: Known, target: Target) -> float:
    """Predicts by a ring's bytes beside compute that is shared evenly."""
    return _of_law("ring", known, target)


def tree(known: Known, target: Target) -> float:
    """Predicts by a tree beside compute that is shared evenly."""
    return _of_law("tree", known, target)


def metered(known: Known, target: Target) -> float:
    """Predicts by Lemma 3.1 with the overhead as metered in the step of two."""
    wall, sync = known.two[target.batch], known.sync[target.batch]
    return speedup(target.workers, overhead_ratio(max(wall - sync, 1e-3 * wall), sync, 2))


def local_level(known: Known, target: Target) -> float:
    """Predicts by one worker's step at the local batch, and two workers' exchange."""
    return _by_local(known, target, lambda _: 1.0)


def local_ring(known: Known, target: Target) -> float:
    """Predicts by one worker's step at the local batch, and an exchange that grows as a ring's."""
    return _by_local(known, target, lambda n: ring_seconds(1.0, n, PER_BYTE))


def local_tree(known: Known, target: Target) -> float:
    """Predicts by one worker's step at the local batch, and an exchange that grows as a tree's."""
    return _by_local(known, target, lambda n: tree_seconds(0.5, n, PER_BYTE))


def step_law(known: Known, target: Target) -> float:
    """Predicts by a line of compute through one worker's steps, and a ring of rings."""
    line = fit_compute_line(known.one_local)
    share = math.ceil(target.batch / target.workers)
    near, far = (
        max(at(curve, share) - line.seconds(share), 0.0) if curve else None
        for curve in (known.two_local, known.far_local)
    )
    law = StepLaw(line, near or 0.0, workers_per_node=known.per_node, far_pair_seconds=far)
    return known.one[target.batch] / law.seconds(target.workers, target.batch)


def hierarchical(known: Known, target: Target) -> float:
    """Predicts by one worker's step at the local batch, a ring within a node and one across."""
    local = target.batch / target.workers
    compute = at(known.one_local, local)
    near = max(at(known.two_local, local) - compute, 0.0)
    far = max(at(known.far_local, local) - compute, 0.0) if target.nodes > 1 else 0.0
    within = ring_seconds(near, math.ceil(target.workers / target.nodes), PER_BYTE)
    step = compute + within + ring_seconds(far, target.nodes, PER_BYTE)
    return known.one[target.batch] / step


def core_law(known: Known, target: Target) -> float:
    """Predicts by the search's own law, fitted to all steps of one and two workers."""
    cells = {Allocation(1, batch): s / batch for batch, s in known.one.items()}
    cells |= {Allocation(2, batch): s / batch for batch, s in known.two.items()}
    if target.nodes > 1:
        sizes = (batch // 2 for batch in known.two)
        far = {2 * n: at(known.far_local, n) for n in sizes if known.far_local and n}
        cells |= {Allocation(2, batch, nodes=2): s / batch for batch, s in far.items()}
    return _by_core(cells, known, target)


def core_pair(known: Known, target: Target) -> float:
    """Predicts by the search's own law, fitted to the two steps of the same batch."""
    batch = target.batch
    cells = {Allocation(n, batch): s[batch] / batch for n, s in ((1, known.one), (2, known.two))}
    return _by_core(cells, known, target)


Predictor = Callable[[Known, Target], float]
PREDICTORS: dict[str, Predictor] = {
    "Lemma 3.1, wall of the two (Amdahl)": lemma,
    "Lemma 3.1, metered exchange": metered,
    "ring, compute / n": ring,
    "tree, compute / n": tree,
    "level, compute at b / n": local_level,
    "ring, compute at b / n": local_ring,
    "tree, compute at b / n": local_tree,
    "ring of rings, compute at b / n": hierarchical,
    "StepLaw": step_law,
    "the search's law, same batch": core_pair,
    "the search's law, all batches": core_law,
}


def can_predict(name: str, known: Known, target: Target) -> bool:
    """Tells whether what is measured is what a predictor needs."""
    if name == "Lemma 3.1, metered exchange":
        return target.batch in known.sync
    is_near = target.nodes == 1 or name not in ("StepLaw", "ring of rings, compute at b / n")
    return is_near or bool(known.far_local)


def _of_law(name: str, known: Known, target: Target) -> float:
    one, two = known.one[target.batch], known.two[target.batch]
    return one / fit_law(name, {1: one, 2: two}).seconds(target.workers)


def _by_local(known: Known, target: Target, growth: Callable[[int], float]) -> float:
    local = target.batch / target.workers
    compute = at(known.one_local, local)
    exchange = max(at(known.two_local, local) - compute, 0.0)
    return known.one[target.batch] / (compute + exchange * growth(target.workers))


def _by_core(cells: Mapping[Allocation, float], known: Known, target: Target) -> float:
    asked = Allocation(target.workers, target.batch, target.nodes)
    fitted = fit(
        Grid.of([*cells, asked]),
        Measured(
            places=np.arange(len(cells)),
            values=np.log(list(cells.values())),
            counts=np.ones(len(cells)),
            squares=0.0,
            freedom=0,
        ),
    )
    step = math.exp(fitted.mean[-1]) * target.batch
    return known.one[target.batch] / step

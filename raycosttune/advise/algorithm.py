"""One algorithm for each layer, the fastest that fit into memory together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from raycosttune.advise.memory import MemoryLine, workspace_bytes
from raycosttune.advise.quantity import amount, count, of_kind, refuse
from raycosttune.errors import InvalidAdviceError


class Cost(NamedTuple):
    """Is what a layer costs by one algorithm.

    Attributes:
        seconds: Of a step, forward and backward.
        bytes: Of its workspace.
    """

    seconds: float
    bytes: float


LayerCosts = Mapping[str, Mapping[str, Cost]]


@dataclass(frozen=True)
class AlgorithmChoice:
    """Is one algorithm for each layer.

    Attributes:
        algorithms: Name of the algorithm by layer.
        seconds: Of all layers.
        bytes: Of all workspaces.
    """

    algorithms: Mapping[str, str]
    seconds: float
    bytes: float


@dataclass(frozen=True)
class BatchChoice:
    """Is a batch and its algorithms.

    Attributes:
        batch_size: Samples of a worker.
        choice: The algorithms at this batch.
        samples_per_second: Of a worker.
    """

    batch_size: int
    choice: AlgorithmChoice
    samples_per_second: float


def choose_algorithms(costs: LayerCosts, memory_bytes: float) -> AlgorithmChoice:
    """Returns the choice that takes least time within memory, by an integer program.

    Minimises sum x_kl T_kl over x in {0, 1}, with sum_l x_kl = 1 for each layer k and
    sum x_kl M_kl <= M_bound.

    Args:
        costs: Cost of each algorithm l by its name, of each layer k by its name.
        memory_bytes: M_bound, what all workspaces together may take.

    Raises:
        InvalidAdviceError: If the leanest algorithms do not fit, a layer has none, or a number
            is unusable.

    References:
        Zou et al. 2017, the integer program; solved by HiGHS.

    >>> direct, fft = Cost(seconds=3, bytes=0), Cost(seconds=1, bytes=6)
    >>> costs = {"conv1": {"direct": direct, "fft": fft}, "conv2": {"direct": direct, "fft": fft}}
    >>> choose_algorithms(costs, memory_bytes=10).seconds
    4.0
    """
    bound = amount("memory_bytes", memory_bytes)
    of_kind("costs", costs, Mapping)
    for layer, options in costs.items():
        of_kind(f"the costs of {layer}", options, Mapping)
        if not options:
            refuse(f"the costs of {layer}", "name at least one algorithm", dict(options))
        for name, cost in options.items():
            of_kind(f"the cost of {name} for {layer}", cost, Cost)
            amount(f"seconds of {name} for {layer}", cost.seconds)
            amount(f"bytes of {name} for {layer}", cost.bytes)
    least = math.fsum(min(cost.bytes for cost in options.values()) for options in costs.values())
    if least > bound:
        refuse("memory_bytes", f"hold the leanest algorithms, {least:.4g} bytes", memory_bytes)
    return _solve(costs, bound) if costs else AlgorithmChoice({}, 0.0, 0.0)


def choose_batch(
    costs: Mapping[int, LayerCosts], memory_bytes: float, line: MemoryLine
) -> BatchChoice:
    """Returns the batch that passes most samples a second through its best algorithms.

    A larger batch leaves less memory for workspaces, so the two are chosen together.

    Args:
        costs: Costs of the layers by the samples of a worker.
        memory_bytes: What a worker may use.
        line: What a step takes beside workspaces.

    Raises:
        InvalidAdviceError: If no batch fits, or a number is unusable.

    References:
        Zou et al. 2017: the batch and the algorithms share M_bound.

    >>> costs = {8: {"conv": {"fft": Cost(1, 500)}}, 16: {"conv": {"direct": Cost(3, 0)}}}
    >>> choose_batch(costs, 1000, MemoryLine(100, 10)).batch_size
    8
    """
    of_kind("costs", costs, Mapping)
    of_kind("line", line, MemoryLine)
    found: list[BatchChoice] = []
    why = "there is no batch"
    for batch in sorted(count("a batch", batch) for batch in costs):
        try:
            choice = choose_algorithms(costs[batch], workspace_bytes(memory_bytes, line, batch))
        except InvalidAdviceError as error:
            why = str(error)
            continue
        rate = batch / choice.seconds if choice.seconds > 0 else math.inf
        found.append(BatchChoice(batch, choice, rate))
    if not found:
        rule = f"hold one of the batches {sorted(costs)} and its algorithms ({why})"
        refuse("memory_bytes", rule, memory_bytes)
    return max(found, key=lambda each: each.samples_per_second)


def _solve(costs: LayerCosts, bound: float) -> AlgorithmChoice:
    """Solves the program, again without each answer that only rounding lets in."""
    import numpy as np  # noqa: PLC0415 - the formulas beside it need neither
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - as above

    pairs = [
        (layer, name)
        for layer, options in costs.items()
        for name, cost in options.items()
        if cost.bytes <= bound
    ]
    seconds = np.array([costs[layer][name].seconds for layer, name in pairs])
    sizes = np.array([costs[layer][name].bytes for layer, name in pairs])
    one_each = np.array([[layer == other for other, _ in pairs] for layer in costs], dtype=float)
    scale = bound or 1.0  # the solver's tolerances are absolute
    rules = [
        LinearConstraint(one_each, 1, 1),
        LinearConstraint(sizes / scale, -np.inf, bound / scale),
    ]
    while True:
        solved = milp(
            seconds / (seconds.max() or 1.0),
            integrality=np.ones(len(pairs)),
            bounds=Bounds(0, 1),
            constraints=rules,
            options={"mip_rel_gap": 0.0},
        )
        if solved.x is None:
            msg = f"memory_bytes must let the integer program end, got {bound!r}: {solved.message}"
            raise InvalidAdviceError(msg)
        taken = solved.x > 0.5  # noqa: PLR2004 - rounds to 1
        chosen = [pair for pair, is_taken in zip(pairs, taken, strict=True) if is_taken]
        total = math.fsum(costs[layer][name].bytes for layer, name in chosen)
        if total <= bound:
            took = math.fsum(costs[layer][name].seconds for layer, name in chosen)
            return AlgorithmChoice(dict(chosen), took, total)
        rules.append(LinearConstraint(taken.astype(float), -np.inf, len(costs) - 1))

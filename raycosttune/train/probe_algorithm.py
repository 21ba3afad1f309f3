"""Times the algorithms of each layer, chooses by the integer program, and checks the choice."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from raycosttune.advise import (
    AlgorithmChoice,
    BatchChoice,
    Cost,
    Memory,
    choose_algorithms,
    choose_batch,
)
from raycosttune.advise.algorithm import LayerCosts
from raycosttune.train.probe_child import run_children
from raycosttune.train.probe_job import Job, Stepper, moved
from raycosttune.train.probe_layer import (
    CONVERTED,
    DEFAULT,
    algorithms,
    apply_algorithms,
    layers,
    use,
)
from raycosttune.train.probe_load import load_job
from raycosttune.train.probe_machine import available_bytes, growth_bytes

HERE = "raycosttune.train.probe_algorithm"
REPEATS = 5


@dataclass(frozen=True)
class AlgorithmProbe:
    """Is what was found about the algorithms of the layers.

    Attributes:
        costs: Of each layer by each algorithm.
        choice: One for each layer.
        ratio: Seconds of the whole step with the choice over those without, median of pairs;
            1 where the choice is PyTorch's own.
    """

    costs: LayerCosts
    choice: AlgorithmChoice
    ratio: float


def probe_algorithms(
    target: str,
    batch_size: int,
    *,
    memory_bytes: float | None = None,
    device: str = "cpu",
    repeats: int = REPEATS,
    exact: bool = True,
) -> AlgorithmProbe:
    """Times each layer by each algorithm, and the whole step with what is best by these.

    Layers are timed alone, on inputs that have the algorithm's own layout; in the whole a
    change of layout takes time too. So the whole decides: where neither the choice nor one
    algorithm for all is faster than PyTorch's own, this is the answer.

    Args:
        target: `module:function`, which makes the job.
        batch_size: Samples of a worker.
        memory_bytes: What all workspaces together may take; by default what is there.
        device: "cpu", "cuda" or one of several.
        repeats: Timings of each, at least 1.
        exact: Whether results must be those of full precision, but for rounding.

    Raises:
        InvalidAdviceError: If memory holds no choice, or an argument is unusable.
        ProbeError: If a step fails.
    """
    common = {"target": target, "samples": batch_size, "device": device}
    common |= {"repeats": repeats, "exact": exact}
    costs = _costs(common)
    memory = available_bytes(device) if memory_bytes is None else memory_bytes
    choice = choose_algorithms(costs, memory)
    own = dict.fromkeys(costs, DEFAULT)
    tried = [choice, *_uniform(costs, memory)]
    plans = [plan for plan in tried if plan.algorithms != own]  # what differs from itself is noise
    if not plans:
        return AlgorithmProbe(costs, _priced(costs, own), 1.0)
    arguments = common | {"plans": [dict(plan.algorithms) for plan in plans]}
    (ratios,) = run_children(f"{HERE}:compare_plans", arguments)
    best = min(range(len(plans)), key=ratios.__getitem__)
    if ratios[best] >= 1:
        return AlgorithmProbe(costs, _priced(costs, own), 1.0)
    return AlgorithmProbe(costs, plans[best], ratios[best])


def probe_batch(
    target: str,
    batches: Sequence[int],
    memory: Memory,
    *,
    device: str = "cpu",
    repeats: int = REPEATS,
    exact: bool = True,
) -> BatchChoice:
    """Times the layers at some batches, and chooses batch and algorithms together.

    Args:
        target: `module:function`, which makes the job.
        batches: Samples of a worker to choose from.
        memory: As `profile_job` measured it.
        device: "cpu", "cuda" or one of several.
        repeats: Timings of each, at least 1.
        exact: Whether results must be those of full precision, but for rounding.

    Raises:
        InvalidAdviceError: If no batch fits, or an argument is unusable.
        ProbeError: If a step fails.

    References:
        Zou et al. 2017: the batch and the algorithms share the memory.
    """
    how = {"target": target, "device": device, "repeats": repeats, "exact": exact}
    fitting = [batch for batch in batches if batch <= memory.largest_batch]
    costs = {batch: _costs(how | {"samples": batch}) for batch in fitting or batches}
    return choose_batch(costs, memory.available_bytes, memory.line)


def _costs(arguments: dict[str, Any]) -> LayerCosts:
    (told,) = run_children(f"{HERE}:measure_layers", arguments)
    return {
        layer: {name: Cost(*cost) for name, cost in by_name.items()}
        for layer, by_name in told.items()
    }


def measure_layers(
    target: str, samples: int, device: str, repeats: int, *, exact: bool
) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns seconds and bytes of each layer by each algorithm, in this process."""
    job = load_job(target)
    model = job.model.to(device).train()
    batch = moved(job.batch(samples), torch.device(device))
    inputs = _inputs(job, model, batch)
    return {
        name: _measure(layer, inputs[name], repeats, exact=exact)
        for name, layer in layers(model)
        if name in inputs
    }


def compare_plans(
    target: str,
    samples: int,
    device: str,
    repeats: int,
    *,
    exact: bool,
    plans: list[dict[str, str]],
) -> list[float]:
    """Returns each plan's seconds of a step over those of PyTorch's own, as medians of pairs."""
    job = load_job(target)
    stepper = Stepper(job, device)
    batch = job.batch(samples)

    def seconds(plan: Mapping[str, str]) -> float:
        apply_algorithms(stepper.model, plan, exact=exact)
        stepper.step(batch)  # the first is slower
        stepper.wait()
        began = time.perf_counter()
        stepper.step(batch)
        stepper.wait()
        return time.perf_counter() - began

    ratios: list[list[float]] = [[] for _ in plans]
    for _ in range(repeats):
        for plan, found in zip(plans, ratios, strict=True):
            before, with_plan, after = seconds({}), seconds(plan), seconds({})
            found.append(2 * with_plan / (before + after))
    return [statistics.median(found) for found in ratios]


def _uniform(costs: LayerCosts, memory: float) -> list[AlgorithmChoice]:
    """Returns choices of one algorithm for every layer that has it, as far as they fit."""
    names = {name for by_name in costs.values() for name in by_name} - {DEFAULT}
    plans = [
        {layer: name if name in by_name else DEFAULT for layer, by_name in costs.items()}
        for name in sorted(names)
    ]
    return [plan for plan in (_priced(costs, plan) for plan in plans) if plan.bytes <= memory]


def _priced(costs: LayerCosts, plan: Mapping[str, str]) -> AlgorithmChoice:
    chosen = [costs[layer][name] for layer, name in plan.items()]
    return AlgorithmChoice(
        dict(plan), sum(cost.seconds for cost in chosen), sum(cost.bytes for cost in chosen)
    )


def _inputs(job: Job, model: nn.Module, batch: Any) -> dict[str, Tensor]:  # noqa: ANN401 - as the dataset has it
    """Returns what each layer gets in a forward pass, and whether it needs a gradient."""
    found: dict[str, Tensor] = {}
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, inputs, name=name: found.setdefault(
                name, inputs[0].detach().requires_grad_(inputs[0].requires_grad)
            )
        )
        for name, layer in layers(model)
    ]
    job.loss(model, batch)
    for hook in hooks:
        hook.remove()
    return found


def _measure(
    layer: nn.Module, x: Tensor, repeats: int, *, exact: bool
) -> dict[str, tuple[float, float]]:
    """Times the algorithms of one layer in turn."""
    names = list(algorithms(layer, x.device, exact=exact))
    seconds: dict[str, list[float]] = {name: [] for name in names}
    sizes = dict.fromkeys(names, 0.0)
    for repeat in range(repeats + 1):
        for name in names:
            use(layer, name, exact=exact)
            own = _laid_out(x, name)
            with growth_bytes(x.device) as growth:
                began = time.perf_counter()
                out = layer(own)
                out.backward(torch.ones_like(out))
                _wait(x.device)
                took = time.perf_counter() - began
            if repeat:  # the first is slower
                seconds[name].append(took)
            sizes[name] = max(sizes[name], growth.bytes)
            layer.zero_grad()
    use(layer, DEFAULT)
    return {name: (statistics.median(seconds[name]), sizes[name]) for name in names}


def _laid_out(x: Tensor, name: str) -> Tensor:
    form = torch.channels_last if name == CONVERTED else torch.contiguous_format
    return x.detach().clone(memory_format=form).requires_grad_(x.requires_grad)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)

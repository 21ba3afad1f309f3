"""Times a few steps of a training loop in many cells, all within one start of workers."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from raycosttune.train.keys import PROFILE
from raycosttune.train.profile_cells import InvalidProfileError, Profiler, ProfileResult, Settings
from raycosttune.train.profile_group import Subgroup
from raycosttune.train.profile_steps import StepWatch

Config = dict[str, Any]


def profile_loop(  # noqa: PLR0913 - all after cells have defaults
    train_loop: Callable[[Config], object],
    cells: Sequence[tuple[int, int]],
    *,
    steps: int = 10,
    least_steps: int = 5,
    warmup: int = 3,
    samples: int | None = None,
    timeout_seconds: float = 300.0,
    workers_key: str = "num_workers",
    batch_key: str = "batch_size",
) -> Callable[[Config], Any]:
    """Makes a training loop into one that times a few of its steps in each of many cells.

    Pass it to a `TorchTrainer` with as many workers as the largest cell has. It calls the
    loop once a cell, on the first workers only where the cell has fewer, and ends each call
    from within an optimizer's step. Of the loop's own reports none reaches Ray Train.

    The loop must be an ordinary one for PyTorch: it asks Ray Train or `torch.distributed` for
    its worker count, trains in the default process group, steps a `torch.optim` optimizer,
    on every worker as often, and goes on for at least `warmup + 1` steps.

    Args:
        train_loop: The loop; it takes a config.
        cells: (workers, global batch) of each.
        steps: Steps timed in a cell of the smallest batch; at a larger one they are fewer in
            proportion.
        least_steps: Steps timed in a cell at least, where `steps` are not fewer.
        warmup: Steps before these, at least 1, which are slower.
        samples: Samples of an epoch. Needed only where a loop neither draws its batches from
            a PyTorch DataLoader nor ends an epoch within the steps.
        timeout_seconds: Limit of a cell, of each collective in it and of each wait for
            another worker.
        workers_key: Key of the worker count in the config, nested with "/".
        batch_key: Key of the global batch in the config, nested with "/".

    Returns:
        A loop that reports what it has so far, as `PROFILE`, after the cells of each worker
        count, and returns the whole on the first worker: read it with `read_profile`. Start
        it at once: from here on its start-up is counted.

    Raises:
        InvalidProfileError: If an argument is unusable.
    """
    settings = Settings(
        train_loop=train_loop,
        cells=tuple(sorted(set(cells), key=lambda cell: (-cell[0], cell[1]))),
        steps=steps,
        least_steps=least_steps,
        warmup=warmup,
        samples=samples,
        timeout_seconds=timeout_seconds,
        workers_key=workers_key,
        batch_key=batch_key,
    )
    made_at = time.time()

    def profile(config: Config) -> ProfileResult | None:
        import ray.train  # noqa: PLC0415 - a driver may have no Ray Train
        import ray.util  # noqa: PLC0415 - as above

        from raycosttune.train.profile_context import Shown, showing  # noqa: PLC0415 - as above

        node = ray.train.get_context().get_node_rank()
        group = Subgroup(ray.util.get_node_ip_address(), node, timeout_seconds)

        def show(workers: int, watch: StepWatch) -> AbstractContextManager[None]:
            local = group.nodes[:workers].count(node)
            return showing(Shown(workers, local, workers == group.size), watch.report)

        profiler = Profiler(settings, group, show, made_at)
        for result in profiler.results(config):
            ray.train.report({PROFILE: result} if group.rank == 0 else {})
        return result if group.rank == 0 else None

    return profile


def read_profile(told: object) -> ProfileResult:
    """Returns what a profile showed.

    Args:
        told: The `Result` of `TorchTrainer.fit`, or metrics that the profile reported.

    Raises:
        InvalidProfileError: If no profile is in it.
    """
    metrics = told if isinstance(told, Mapping) else getattr(told, "metrics", None) or {}
    result = getattr(told, "return_value", None) or metrics.get(PROFILE)
    if not isinstance(result, dict) or not ProfileResult.__required_keys__ <= result.keys():
        msg = (
            f"a profile must be read from its run's result or report, got {told!r}. "
            "Pass what TorchTrainer.fit returned."
        )
        raise InvalidProfileError(msg)
    return cast("ProfileResult", result)

"""Training functions made into what Ray Tune runs."""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import tune

from raycosttune.core.value import read_count
from raycosttune.errors import InvalidTrainableError
from raycosttune.results.journal import Journal
from raycosttune.results.rows import requested_row, run_header_row
from raycosttune.train.keys import FOLDER, PROFILE
from raycosttune.tune.folder import local_folder, run_journal
from raycosttune.tune.function import check_function, check_key
from raycosttune.tune.profile_run import profiled_loop, result_row
from raycosttune.tune.resources import (
    TYPE_KEY,
    WORKERS_KEY,
    ByType,
    DriverResources,
    WorkerResources,
    check_driver,
    read_by_type,
    read_resources,
    type_in,
    workers_in,
)
from raycosttune.tune.stopwatch import timed_reports
from raycosttune.tune.trainer import trainer_class

if TYPE_CHECKING:
    from ray.train import CheckpointConfig, FailureConfig
    from ray.train.torch import TorchConfig
    from ray.train.v2.api.callback import RayTrainCallback

logger = logging.getLogger(__name__)
Config = dict[str, Any]
DRAIN_SECONDS = 10.0
HANDOVER_SECONDS = 0.3


def torch_trainable(  # noqa: PLR0913 - a run's own settings, passed through
    train_loop: Callable[[Config], None],
    *,
    resources_per_worker: Mapping[str, float] | None = None,
    use_gpu: bool = False,
    callbacks: Sequence["RayTrainCallback"] = (),
    storage_path: str | None = None,
    checkpoint_config: "CheckpointConfig | None" = None,
    failure_config: "FailureConfig | None" = None,
    torch_config: "TorchConfig | None" = None,
    workers_key: str = WORKERS_KEY,
    resources_by_type: ByType | None = None,
    node_type_key: str = TYPE_KEY,
    samples: int | None = None,
    min_workers: int | None = None,
) -> Callable[[Config], None]:
    """Makes a Ray Train loop for PyTorch into what Ray Tune runs.

    Each trial starts as many workers as its config says, is metered from the request for
    them, and resumes from its last checkpoint when it is started again. A trial that the
    search asks for as a profile times some steps in several cells instead.

    Args:
        train_loop: The loop, as `TorchTrainer` takes it; it reports the goal's metric and
            `epoch` by `ray.train.report`.
        resources_per_worker: What a worker needs beside or instead of one CPU, and one GPU
            with `use_gpu`: {"CPU": 0} leaves the CPU out.
        use_gpu: Whether workers train on a GPU.
        callbacks: Further callbacks of the run, such as a `RebalanceCallback`.
        storage_path: Where runs keep checkpoints; inside the experiment's folder by default.
        checkpoint_config: How many checkpoints are kept.
        failure_config: How often a run restarts by itself.
        torch_config: The process group's settings.
        workers_key: Key of the worker count in the config, nested with "/".
        resources_by_type: What a worker needs beside that on each type of machine among which
            the search chooses: a resource that nodes of the type alone have, such as
            {"v100": {"accelerator_type:V100": 0.001}}.
        node_type_key: Key of the type of machine in the config, nested with "/".
        samples: Samples of an epoch, for profiles of a loop that neither draws its batches
            from a PyTorch DataLoader nor ends an epoch within some steps.
        min_workers: Fewest workers with which a run begins, or goes on where nodes are lost:
            Ray Train takes as many as it finds, up to the trial's own. The search learns from
            the number that really ran. Left out, a run waits for all of its workers.

    Returns:
        A trainable for `tune.run` or `tune.Tuner`.

    Raises:
        InvalidTrainableError: If `train_loop` is no function of at most a config, as when a
            trainer is passed, `workers_key` is empty, or `samples` or `min_workers` is no count.
        InvalidSpaceError: If `resources_per_worker` or `resources_by_type` is unusable.
    """
    check_function("torch_trainable", train_loop, may_take_none=True)
    check_key("workers_key", workers_key)
    check_key("node_type_key", node_type_key)
    _check_count("samples", samples, "the samples of an epoch", "samples=len(dataset)")
    _check_count("min_workers", min_workers, "the fewest workers of a run", "min_workers=1")
    by_type = read_by_type(resources_by_type)
    resources = read_resources(resources_per_worker, use_gpu=use_gpu, by_type=by_type)

    def run_training(config: Config) -> None:
        from ray.train import RunConfig, ScalingConfig  # noqa: PLC0415 - needs torch

        from raycosttune.train.callback import (  # noqa: PLC0415 - imports Ray Train
            MeterReportCallback,
            MeterStartCallback,
        )
        from raycosttune.train.meter import Meter  # noqa: PLC0415 - imports Ray Train
        from raycosttune.train.rebalance_callback import measuring  # noqa: PLC0415 - as above

        check_driver(tune.get_context().get_trial_resources())
        # Train takes one report an interval, 2 s by default: a floor under short epochs.
        os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
        trial_id = str(tune.get_context().get_trial_id())
        folder, results = _experiment()
        journal = run_journal(folder, trial_id)

        least = None if PROFILE in config else min_workers
        each = {**resources, **by_type.get(type_in(config, node_type_key, by_type), {})}
        workers: Any = elastic(workers_in(config, workers_key), least)  # Ray types it as of old

        def fit(loop: Any, loop_config: Config, own: Sequence[Any], **settings: Any) -> Any:  # noqa: ANN401 - Train's own
            run_callbacks: list[Any] = [*own, *callbacks]
            return trainer_class()(
                loop,
                train_loop_config=loop_config,
                torch_config=torch_config,
                scaling_config=ScalingConfig(
                    num_workers=workers,
                    use_gpu=use_gpu,
                    resources_per_worker=each,
                ),
                run_config=RunConfig(
                    storage_path=storage_path or results["storage_path"],
                    storage_filesystem=None if storage_path else results["storage_filesystem"],
                    callbacks=run_callbacks,
                    **settings,
                ),
            ).fit()

        if PROFILE in config:
            own = Journal(journal)
            own.append(run_header_row(trial_id), requested_row(trial_id, time.time()))
            told = fit(*profiled_loop(train_loop, config, samples), (), name=f"{trial_id}-profile")
            row = result_row(trial_id, config, told)
            own.append(row)
            tune.report({PROFILE: json.dumps(row)})
            return
        meter = Meter(trial_id, journal)
        reporter = MeterReportCallback(meter)
        fit(
            train_loop,
            config,
            (MeterStartCallback(meter), reporter, *measuring(callbacks)),
            name=trial_id,
            checkpoint_config=checkpoint_config,
            failure_config=failure_config,
        )
        _wait_for_reports(reporter)

    run_training.__name__ = getattr(train_loop, "__name__", "train_loop")
    trainable: Callable[[Config], None] = tune.with_resources(
        run_training, DriverResources(resources, workers_key, by_type, node_type_key)
    )
    return trainable


def function_trainable(
    function: Callable[[Config], object],
    *,
    resources_per_worker: Mapping[str, float] | None = None,
    workers_key: str = WORKERS_KEY,
    resources_by_type: ByType | None = None,
    node_type_key: str = TYPE_KEY,
) -> Callable[[Config], object]:
    """Makes a plain Tune function hold the resources of all its workers while it runs.

    Args:
        function: Takes a config, starts what workers it likes, and reports the goal's metric
            and `epoch` by `ray.tune.report`.
        resources_per_worker: What a worker needs beside or instead of one CPU: {"GPU": 1}
            asks for both, {"CPU": 0, "GPU": 1} for a GPU alone.
        workers_key: Key of the worker count in the config, nested with "/".
        resources_by_type: What a worker needs beside that on each type of machine, as in
            `torch_trainable`.
        node_type_key: Key of the type of machine in the config, nested with "/".

    Returns:
        A trainable for `tune.run` or `tune.Tuner`.

    Raises:
        InvalidTrainableError: If `function` is no function of a config, or `workers_key`
            is empty.
        InvalidSpaceError: If `resources_per_worker` or `resources_by_type` is unusable.
    """
    check_function("function_trainable", function)
    check_key("workers_key", workers_key)
    check_key("node_type_key", node_type_key)
    by_type = read_by_type(resources_by_type)
    resources = read_resources(resources_per_worker, by_type=by_type)

    def run_function(config: Config) -> object:
        with timed_reports():
            return function(config)

    def reserve(config: Config) -> WorkerResources:
        node_type = type_in(config, node_type_key, by_type)
        keys = workers_key, by_type, node_type_key
        return WorkerResources(workers_in(config, workers_key), resources, *keys, node_type)

    run_function.__name__ = getattr(function, "__name__", "function")
    trainable: Callable[[Config], object] = tune.with_resources(run_function, reserve)
    return trainable


def elastic(workers: int, least: int | None) -> int | tuple[int, int]:
    """Returns the workers of a run as Ray Train takes them: a number, or the least and the most."""
    return workers if least is None or least >= workers else (least, workers)


def _check_count(name: str, value: object, what: str, example: str) -> None:
    if value is not None and read_count(value) is None:
        msg = (
            f"{name} must be a whole number of at least 1, {what}, got {value!r}. Write {example}."
        )
        raise InvalidTrainableError(msg)


def _experiment() -> tuple[Path, dict[str, Any]]:
    """Returns the experiment's local folder, and where its runs keep their checkpoints."""
    from ray.train._internal.session import get_session  # noqa: PLC0415 - private, read late

    session: Any = get_session()
    storage = session.storage
    return local_folder(storage), {
        "storage_path": (Path(storage.experiment_fs_path) / FOLDER / "train").as_posix(),
        "storage_filesystem": storage.storage_filesystem,
    }


def _wait_for_reports(reporter: object) -> None:
    """Waits until Tune has taken the last report: what is left when a trial returns is lost."""
    queue = getattr(reporter, "_training_actor_item_queue", None)
    if queue is None:
        logger.warning("this release of Ray hides its report queue; last reports may be late")
        return
    deadline = time.monotonic() + DRAIN_SECONDS
    while not queue.empty() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(HANDOVER_SECONDS)

"""Profiles as a trial runs them: the loop that times their cells, and its result."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from raycosttune.core.profile import Profiled
from raycosttune.core.space import Allocation
from raycosttune.results.rows import Row, profiled_row
from raycosttune.train.keys import PROFILE
from raycosttune.tune.convert import Config, merged

Loop = Callable[[Config], object]


def without_profile(config: Config) -> Config:
    """Returns the config of a trial as that of a run: the same where it is one."""
    if PROFILE not in config:
        return config
    return {key: value for key, value in config.items() if key != PROFILE}


def profiled_loop(train_loop: Loop, config: Config, samples: int | None) -> tuple[Loop, Config]:
    """Makes a training loop into one that times the cells that a trial's config asks for.

    Args:
        train_loop: The loop.
        config: The trial's config.
        samples: Samples of an epoch, where the loop may not show its steps per epoch.

    Returns:
        What to train instead, and its config.
    """
    from raycosttune.train.profile import profile_loop  # noqa: PLC0415 - needs torch

    asked, own = config[PROFILE], without_profile(config)
    configs = {
        f"{cell['workers']}/{cell['batch_size']}": merged(own, cell["config"])
        for cell in asked["cells"]
    }

    takes_config = bool(inspect.signature(train_loop).parameters)

    def train_cell(every: Config) -> object:  # goes to the workers by value, and imports nothing
        run = every["configs"][f"{every['workers']}/{every['batch_size']}"]
        return train_loop(*([run] if takes_config else []))

    loop = profile_loop(
        train_cell,
        [(cell["workers"], cell["batch_size"]) for cell in asked["cells"]],
        steps=asked["steps"],
        samples=samples,
        workers_key="workers",
        batch_key="batch_size",
    )
    return loop, {"configs": configs}


def result_row(trial_id: str, config: Config, told: object) -> Row:
    """Returns what a profile showed as a row of the journal.

    The seconds of an epoch are those from report to report, where an epoch was seen whole, else
    those of its steps.

    Args:
        trial_id: The trial.
        config: Its config.
        told: What `TorchTrainer.fit` returned.

    Raises:
        InvalidProfileError: If no profile is in it.
    """
    from raycosttune.train.profile import read_profile  # noqa: PLC0415 - needs torch

    result = read_profile(told)
    asked = {
        (cell["workers"], cell["batch_size"]): Allocation.read(cell)
        for cell in config[PROFILE]["cells"]
    }
    timed, failed = {}, {}
    for cell in result["cells"]:
        seconds = cell["whole_epoch_seconds"] or cell["epoch_seconds"]
        place = asked[cell["workers"], cell["batch_size"]]
        if seconds:
            timed[place] = seconds
        else:
            reason = "its steps per epoch are unknown: pass samples= to torch_trainable"
            failed[place] = {"reason": reason, "out_of_memory": False}
    for lost in result["failed"]:
        failed[asked[lost["workers"], lost["batch_size"]]] = {
            "reason": lost["reason"],
            "out_of_memory": lost["out_of_memory"],
        }
    shown = Profiled(timed, result["seconds"], result["startup_seconds"])
    return profiled_row(trial_id, shown, failed)


def read_result(result: Mapping[str, Any]) -> Row | None:
    """Returns the row of a profile's result from a result of Tune's, None where it has none.

    Raises:
        ValueError: If it can't be read.
    """
    text = result.get(PROFILE)
    if text is None:
        return None
    row = json.loads(text)
    if not isinstance(row, dict) or not isinstance(row.get("cells"), list):
        msg = f"a profile's result must be a row of the journal, got {text!r}"
        raise ValueError(msg)  # noqa: TRY004 - what comes from a file or a wire is a wrong value
    return row

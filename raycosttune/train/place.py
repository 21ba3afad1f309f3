"""Where a worker's process is: its device, and what Ray Train knows of it."""

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

logger = logging.getLogger(__name__)
STATE_FILE = "raycosttune-shares.json"


def is_ray_worker() -> bool:
    """Tells whether this process trains for Ray Train; imports nothing of Ray."""
    module = sys.modules.get("ray.train.v2._internal.execution.train_fn_utils")
    return module is not None and getattr(module, "_train_fn_utils", None) is not None


def device() -> torch.device | None:
    """Returns the device of this worker, None for the CPU."""
    if not torch.cuda.is_available():
        return None
    if is_ray_worker():
        import ray.train.torch  # noqa: PLC0415 - a process under torchrun has no Ray

        given = ray.train.torch.get_device()
        return given if given.type == "cuda" else None
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def checkpoint() -> Any:  # noqa: ANN401 - Ray's Checkpoint, or None
    """Returns the checkpoint that Ray Train resumes from, None where there is none."""
    if not is_ray_worker():
        return None
    import ray.train  # noqa: PLC0415 - as above

    return ray.train.get_checkpoint()


def earlier_state() -> Mapping[str, Any]:
    """Returns the state of the shares in the checkpoint, empty where there is none."""
    found = checkpoint()
    if found is None:
        return {}
    with found.as_directory() as folder:
        return read_state(Path(folder) / STATE_FILE)


def read_state(path: Path) -> Mapping[str, Any]:
    """Returns the state of the shares in a file; empty, with a warning, where it is damaged."""
    try:
        state = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("the shares in %s can't be read (%s); they begin equal", path, error)
        return {}
    return state if isinstance(state, Mapping) else {}

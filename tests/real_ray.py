"""A small local Ray, for tests that need a real one."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import ray

ROOT = Path(__file__).parents[1]
_shared = ExitStack()


@contextmanager
def local_ray() -> Iterator[None]:
    """Runs a Ray of two CPUs, whose processes find this package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")
        patch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "10")
        patch.setenv("PYTHONPATH", str(ROOT))
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=100_000_000,
        )
        try:
            yield
        finally:
            ray.shutdown()


def share() -> None:
    """Starts a local Ray, unless the test before has left one."""
    if not ray.is_initialized():
        _shared.enter_context(local_ray())


def address() -> str:
    """Returns where another process joins the Ray that tests share."""
    return str(ray.get_runtime_context().gcs_address)


def end() -> None:
    """Ends the Ray that tests have shared, if there is one."""
    _shared.close()


def wait_for_two_workers() -> None:
    """Waits until nothing holds a CPU of the shared Ray any longer."""
    deadline = time.monotonic() + 60
    while ray.available_resources().get("CPU") != 2.0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ray.available_resources().get("CPU") == 2.0

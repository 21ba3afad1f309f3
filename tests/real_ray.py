"""A small local Ray, for tests that need a real one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import ray

ROOT = Path(__file__).parents[1]


@contextmanager
def local_ray(**environment: str) -> Iterator[None]:
    """Runs a Ray of two CPUs, whose processes find this package and have these variables."""
    fast = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1", "PYTHONPATH": str(ROOT)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (fast | environment).items():
            patch.setenv(name, value)
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

"""Settings that hold for every test."""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nothing here preempts a node, and each run would start a process to look out for it.
os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")

# A shared machine makes single examples slow by chance, so no deadline holds for one.
QUIET = [HealthCheck.too_slow]
# A check has the same draws each time, so that its answer is about the change that it checks.
# HYPOTHESIS_PROFILE=explore draws others: use it when a law or what it holds for has changed.
settings.register_profile(
    "check", deadline=None, derandomize=True, database=None, suppress_health_check=QUIET
)
settings.register_profile("explore", deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts files with slow tests first, so that no process is left alone with them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)

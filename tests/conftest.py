"""Settings that hold for every test."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray's workers would get next to nothing of a processor while other tests run.
os.environ.setdefault("RAY_worker_niceness", "0")
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


CORE = Path(__file__).parent / "core"


SHARED = pytest.StashKey[set[Path]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts files with slow tests first, so that no process is left alone with them at the end.

    Files that share a Ray come in a row, so that it starts once. Plain examples of the core are
    marked, as they alone must reach every branch of it.
    """
    for item in items:
        if item.path.parent == CORE and not is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("plain")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    shared = {item.path for item in items if "shared_ray" in getattr(item, "fixturenames", ())}
    config.stash[SHARED] = shared

    def order(item: pytest.Item) -> tuple[int, bool, Path]:
        group = 1 if item.path in shared else 0 if item.path in slow else 2
        return group, item.path not in slow, item.path

    items.sort(key=order)


@pytest.fixture
def shared_ray() -> None:
    """Gives a Ray of two CPUs; a process starts one for all of its tests that ask in a row."""
    from tests import real_ray  # noqa: PLC0415 - needs ray, which few tests do

    real_ray.share()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ends the shared Ray after the last file whose tests ask for it."""
    shared = item.config.stash[SHARED]
    if item.path in shared and not (nextitem and nextitem.path in shared):
        from tests import real_ray  # noqa: PLC0415 - needs ray, which few tests do

        real_ray.end()

from functools import partial
from typing import Any

import pytest
import torch

from raycosttune.advise import Cluster, MemoryLine, guide, profile_from_data, profile_to_data
from raycosttune.errors import InvalidAdviceError
from raycosttune.train import probe_profile, probe_step
from raycosttune.train.probe_memory import MemoryProbe
from raycosttune.train.probe_profile import profile_job
from tests.train.probe_here import call_here

TARGET = "tests.train.probe_jobs:small"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(probe_step, "run_children", call_here)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def told_pair(asked: list[int], _: str, samples: int, **how: Any) -> dict[str, float]:
    asked.append(samples)
    assert how == {"device": "cpu", "steps": 1, "threads": 1}
    names = ("step_seconds", "compute_seconds", "exchange_seconds", "latency_seconds")
    return dict.fromkeys(names, 0.1)


def told_memory(most: int, *_: Any, memory_bytes: float, device: str) -> MemoryProbe:
    assert device == "cpu"
    fits = memory_bytes * 0.95 / most
    return MemoryProbe(MemoryLine(0.0, fits), {1: fits, most: fits * most}, None, memory_bytes)


def test_a_batch_that_one_worker_cannot_hold_is_timed_by_as_much_as_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(probe_profile, "time_pair", partial(told_pair, asked))
    monkeypatch.setattr(probe_profile, "probe_memory", partial(told_memory, 6))
    profile = profile_job(TARGET, 40, steps=1, memory_bytes=600.0)
    assert asked == [6]
    assert profile.memory is not None
    assert (profile.batch_size, profile.memory.largest_batch) == (40, 6)
    assert profile_from_data(profile_to_data(profile)) == profile
    found = guide(profile, Cluster(8))
    assert [row.fits for row in found.scaling] == [False, False, False, True]
    assert found.advice[0] == "batch 40: it takes the memory of 8 workers"


def test_what_was_not_asked_for_is_not_measured() -> None:
    profile = profile_job(TARGET, 4, steps=1, pair=False, memory=False)
    assert (profile.pair, profile.memory) == (None, None)
    assert profile.samples == 12
    assert profile.loading_seconds > 0


def test_made_up_samples_tell_nothing_of_loading() -> None:
    profile = profile_job("tests.train.probe_jobs:alone", 4, steps=1, pair=False, memory=False)
    assert profile.made_up == (3, 8, 8)
    assert profile.samples is None
    assert (profile.loading_seconds, profile.waiting_seconds) == (0, 0)


def test_bad_arguments_are_refused_before_anything_starts() -> None:
    for batch, steps, threads in ((0, 1, 1), (4, 0, 1), (4, 1, 0)):
        with pytest.raises(InvalidAdviceError, match="must be a whole number"):
            profile_job(TARGET, batch, steps=steps, threads=threads)
    with pytest.raises(InvalidAdviceError, match="must be module:function, got <function"):
        profile_job(test_made_up_samples_tell_nothing_of_loading, 4)  # type: ignore[arg-type]

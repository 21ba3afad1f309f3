from typing import Any

import pytest

from raycosttune.advise import Memory, MemoryLine
from raycosttune.errors import InvalidAdviceError
from raycosttune.train import probe_algorithm
from raycosttune.train.probe_algorithm import (
    compare_plans,
    measure_layers,
    probe_algorithms,
    probe_batch,
)
from tests.train.probe_here import call_here

TARGET = "tests.train.probe_jobs:small"


def test_each_layer_is_timed_by_each_algorithm() -> None:
    told = measure_layers(TARGET, 4, "cpu", 1, exact=True)
    assert list(told) == ["0", "2", "4"]
    assert list(told["0"]) == ["default", "channels_last", "without_mkldnn", "im2col"]
    assert list(told["4"]) == ["default"]
    for by_name in told.values():
        for seconds, size in by_name.values():
            assert seconds > 0
            assert size >= 0


def test_half_precision_is_timed_only_where_asked_for() -> None:
    told = measure_layers(TARGET, 4, "cpu", 1, exact=False)
    assert all("bf16" in by_name for by_name in told.values())


def test_each_plan_is_compared_with_pytorchs_own() -> None:
    plans = [{"0": "im2col"}, {}]
    ratios = compare_plans(TARGET, 4, "cpu", 2, exact=True, plans=plans)
    assert len(ratios) == 2
    assert all(ratio > 0 for ratio in ratios)


def test_the_choice_has_an_algorithm_for_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_algorithm, "run_children", call_here)
    probe = probe_algorithms(TARGET, 4, repeats=1)
    assert probe.choice.algorithms.keys() == probe.costs.keys() == {"0", "2", "4"}
    assert all(name in probe.costs[layer] for layer, name in probe.choice.algorithms.items())
    assert probe.ratio <= 1
    own = set(probe.choice.algorithms.values()) == {"default"}
    assert own == (probe.ratio == 1)


def test_pytorchs_own_choice_is_not_timed_against_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(function: str, arguments: dict[str, Any]) -> list[Any]:
        if function.endswith(":measure_layers"):
            return [{"0": {"default": (1.0, 0.0)}, "2": {"default": (1.0, 0.0)}}]
        return [[0.9] * len(arguments["plans"])]  # by noise alone

    monkeypatch.setattr(probe_algorithm, "run_children", run)
    probe = probe_algorithms(TARGET, 4, memory_bytes=1e9, repeats=1)
    assert (probe.ratio, set(probe.choice.algorithms.values())) == (1.0, {"default"})


def test_batch_and_algorithms_are_chosen_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_algorithm, "run_children", call_here)
    line = MemoryLine(fixed_bytes=1e9, sample_bytes=1e8)
    found = probe_batch(TARGET, (2, 8, 64), Memory(line, 2e9, 9), repeats=1)
    assert found.batch_size in (2, 8)
    assert found.choice.algorithms.keys() == {"0", "2", "4"}
    assert found.samples_per_second == found.batch_size / found.choice.seconds
    with pytest.raises(InvalidAdviceError, match=r"hold one of the batches \[64\]"):
        probe_batch(TARGET, (64,), Memory(line, 2e9, 9), repeats=1)

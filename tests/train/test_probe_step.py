from collections.abc import Iterator

import pytest
import torch

from raycosttune.train.probe_step import measure_alone

TARGET = "tests.train.probe_jobs:small"


@pytest.fixture(autouse=True)
def own_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("batch", "sizes"), [(8, [2, 4, 8]), (1, [2, 4]), (2, [2, 4])])
def test_one_worker_is_timed_at_the_batch_and_about_it(batch: int, sizes: list[int]) -> None:
    told = measure_alone(TARGET, batch, "cpu", 2, 1)
    assert [samples for samples, _ in told["compute_seconds"]] == sizes
    assert all(seconds > 0 for _, seconds in told["compute_seconds"])
    assert told["loading_seconds"] > 0
    assert told["waiting_seconds"] > 0
    assert (told["loaders"], told["samples"]) == (0, 12)
    assert told["parameter_bytes"] > 0
    assert told["made_up"] is None


def test_what_was_made_up_is_told() -> None:
    assert measure_alone("tests.train.probe_jobs:alone", 2, "cpu", 1, 1)["made_up"] == (3, 8, 8)

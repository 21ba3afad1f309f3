import os
from collections.abc import Iterator
from typing import Any

import pytest
import ray.train
from ray.train import collective
from ray.train.v2._internal.data_integration.interfaces import DatasetShardMetadata
from ray.train.v2._internal.execution.train_fn_utils import (
    LocalTrainFnUtils,
    get_train_fn_utils,
    set_train_fn_utils,
)

from raycosttune.train.profile_context import Shown, showing

PART = Shown(workers=2, local_workers=1, is_whole=False)


@pytest.fixture
def _worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalTrainFnUtils]:
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    utils = LocalTrainFnUtils("run", world_size=8)
    set_train_fn_utils(utils)
    yield utils
    set_train_fn_utils(None)


def test_a_loop_sees_the_first_workers_only_until_it_ends(_worker: LocalTrainFnUtils) -> None:  # noqa: PT019 - its value counts
    with pytest.raises(RuntimeError), showing(PART, lambda _: None):  # noqa: PT012 - all that a loop sees
        context = ray.train.get_context()
        assert (context.get_world_size(), context.get_local_world_size()) == (2, 1)
        assert (os.environ["WORLD_SIZE"], os.environ["LOCAL_WORLD_SIZE"]) == ("2", "1")
        raise RuntimeError
    assert get_train_fn_utils() is _worker
    assert ray.train.get_context().get_world_size() == 8
    assert os.environ["WORLD_SIZE"] == "8"
    assert "LOCAL_WORLD_SIZE" not in os.environ


def test_reports_stay_here_and_no_checkpoint_is_seen(
    _worker: LocalTrainFnUtils,  # noqa: PT019 - its value counts
    tmp_path: Any,
) -> None:
    told: list[Any] = []
    checkpoint = ray.train.Checkpoint.from_directory(tmp_path)
    ray.train.report({"loss": 2}, checkpoint=checkpoint)
    assert ray.train.get_checkpoint() is not None
    with showing(PART, told.append):
        assert ray.train.get_checkpoint() is None
        ray.train.report({"loss": 1}, checkpoint=checkpoint)
        assert ray.train.get_checkpoint() is None
        assert ray.train.get_all_reported_checkpoints() == []
        assert ray.train.get_preemption_info() is None
    assert told == [{"loss": 1}]
    assert _worker._get_last_metrics() == {"loss": 2}


@pytest.mark.usefixtures("_worker")
def test_a_part_of_the_workers_can_read_no_shards_of_all() -> None:
    with (
        showing(PART, lambda _: None),
        pytest.raises(NotImplementedError, match=r"Ray Data shards.* got 2 of them"),
    ):
        get_train_fn_utils().get_dataset_shard(DatasetShardMetadata("train", 0))


@pytest.mark.usefixtures("_worker")
def test_collectives_are_those_of_the_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("torch.distributed.barrier", lambda: calls.append("barrier"))
    monkeypatch.setattr("torch.distributed.broadcast_object_list", lambda box, src: box.append(src))
    with showing(PART, lambda _: None):
        collective.barrier()
        assert collective.broadcast_from_rank_zero({"seed": 1}) == {"seed": 1}
    assert calls == ["barrier"]

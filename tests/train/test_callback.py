import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raycosttune.train import keys
from raycosttune.train.callback import MeterReportCallback, MeterStartCallback
from raycosttune.train.meter import Meter


class Queue:
    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def put(self, item: dict[str, Any]) -> None:
        self.items.append(item)


def make_reporter(meter: Meter) -> tuple[MeterReportCallback, Queue]:
    """Makes a reporter as a controller gets it: unpickled, with its queue."""
    reporter = MeterReportCallback.__new__(MeterReportCallback)
    queue = Queue()
    vars(reporter).update(_meter=meter, _training_actor_item_queue=queue)
    return reporter, queue


def test_tune_sees_rank_zero_with_what_was_measured(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path / "a.jsonl")
    starter, (reporter, queue) = MeterStartCallback(meter), make_reporter(meter)
    starter.before_worker_group_start(SimpleNamespace(num_workers=2))
    starter.after_worker_group_training_start(None)
    checkpoint: Any = SimpleNamespace(path="/checkpoint/1")
    reporter.after_report(None, [{"accuracy": 0.5, "epoch": 1}, {"accuracy": 0.1}], checkpoint)
    (told,) = queue.items
    assert told["accuracy"] == 0.5
    assert told[keys.ATTEMPT] == 1
    assert told[keys.WORKERS] == 2
    assert told[keys.CHECKPOINT] == "/checkpoint/1"
    assert told[keys.SECONDS] >= told[keys.STARTUP_SECONDS] >= 0


def test_a_failing_meter_never_ends_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> float:
        msg = "the clock stands still"
        raise RuntimeError(msg)

    meter = Meter("a", tmp_path / "a.jsonl", broken)
    reporter, queue = make_reporter(meter)
    with caplog.at_level(logging.ERROR):
        MeterStartCallback(meter).before_worker_group_start(None)
        reporter.after_report(None, [{"accuracy": 0.5}], None)
        reporter.after_report(None, [{"accuracy": 0.6}], None)
    assert queue.items == [{"accuracy": 0.5}, {"accuracy": 0.6}]
    assert len(caplog.records) == 1

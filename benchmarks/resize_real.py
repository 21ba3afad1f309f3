"""Resizes a real run from 1 to 2 workers at a checkpoint, and compares what it learns and costs.

Usage: python benchmarks/resize_real.py [--json FILE] [--epochs 16] [--seconds-an-epoch 4]

Two runs of one sweep's trial, on the same global batches: one stays on a worker, one goes on with
two after a third of its epochs. Compared are

* the loss of each epoch, in 64-bit numbers;
* the sweep's ledger with stamps: when the run's controller asks for workers, and when the workers'
  own processes enter the loop and end each epoch.

A pause for each sample stands in for compute, so that two workers are twice as fast anywhere.
"""

import argparse
import json
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from raycosttune import Goal, WorkerHours
from raycosttune.core.decision import Resize
from raycosttune.core.held import parts
from raycosttune.core.observation import TrialRecord
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, torch_trainable

SAMPLES, BATCH_SIZE = 240, 24
HOUR = 3600


class ResizeAt(CostAwareScheduler):
    """Resizes every trial to two workers once, after an epoch."""

    def __init__(self, search: CostAwareSearch, epoch: int | None) -> None:
        super().__init__()
        self._asked, self._epoch = search, epoch

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: Any) -> str:
        """See CostAwareScheduler."""
        decision = super().on_trial_result(tune_controller, trial, result)
        if decision == TrialScheduler.CONTINUE and result["epoch"] == self._epoch:
            self._asked.sweep.resize(trial.trial_id, Resize(2, "a benchmark"))
            self._collector.sweep_after_stop()
            return str(TrialScheduler.PAUSE)
        return decision


def train_loop(config: dict[str, Any]) -> None:
    """Fits a small network in 64-bit numbers, and stamps what its process does."""
    context = ray.train.get_context()
    name = f"{os.getpid()}-{context.get_world_rank()}.jsonl"
    file = Path(config["stamps"], name).open("a", encoding="utf-8")  # noqa: SIM115 - until it dies

    def stamp(what: str) -> None:
        told = {"what": what, "at": time.time(), "workers": context.get_world_size()}
        print(json.dumps(told), file=file, flush=True)

    stamp("enter")
    import torch

    from raycosttune.train import (
        SampleMean,
        prepare_data_loader,
        prepare_model,
        report,
        resume,
    )

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    inputs = torch.randn(SAMPLES, 16)
    target = (inputs @ torch.arange(16.0) / 16).tanh()
    dataset = torch.utils.data.TensorDataset(inputs, target)
    loader = prepare_data_loader(dataset, batch_size=config["batch_size"])
    layers = (torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    model = prepare_model(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    mean = SampleMean()
    for epoch in range(resume(model, optimizer, loader=loader), config["epochs"]):
        for x, y in loader:
            time.sleep(config["pause"] * len(x))
            loss = ((model(x).squeeze(1) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean.add(loss)
        metrics = {"epoch": epoch + 1, "loss": mean.read()}
        stamp("epoch")
        report(metrics, model, optimizer)


class Stamps:
    """Makes the callback that stamps each request for workers, in the run's controller."""

    @staticmethod
    def callback(folder: str) -> Any:
        """Returns the callback."""
        from ray.train.v2._internal.execution.callback import (
            WorkerGroupCallback,
        )

        class RequestStamp(WorkerGroupCallback):
            def before_worker_group_start(self, worker_group_context: object) -> None:
                told = {"what": "request", "at": time.time()}
                told["workers"] = getattr(worker_group_context, "num_workers", 0)
                with Path(folder, "requests.jsonl").open("a", encoding="utf-8") as file:
                    print(json.dumps(told), file=file)

        return RequestStamp()


def train(folder: Path, options: argparse.Namespace, resize_at: int | None) -> dict[str, Any]:
    """Runs the trial and returns its record, its stamps and its losses."""
    stamps = folder / "stamps"
    stamps.mkdir(parents=True)
    space = {"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([BATCH_SIZE])}
    goal = Goal(metric="loss", mode="min", target=0.0, planned_runs=1)
    search = CostAwareSearch(goal, cost=WorkerHours(), resize=False)
    tune.run(
        torch_trainable(train_loop, callbacks=[Stamps.callback(str(stamps))]),
        config={
            **space,
            "stamps": str(stamps),
            "epochs": options.epochs,
            "pause": options.seconds_an_epoch / SAMPLES,
        },
        search_alg=search,
        scheduler=ResizeAt(search, resize_at),
        num_samples=1,
        storage_path=str(folder),
        name="sweep",
        verbose=0,
        time_budget_s=600,
    )
    (record,) = search.session.records.values()
    told = [json.loads(line) for path in stamps.iterdir() for line in path.read_text().splitlines()]
    frames = sorted(folder.rglob("raycosttune/trials/*.jsonl"))
    rows = [json.loads(line) for line in frames[0].read_text().splitlines()]
    losses = {r["epoch"]: r["metrics"]["loss"] for r in rows if r["row"] == "report"}
    return {"record": record, "stamps": told, "losses": losses, "search": search}


def by_ledger(record: TrialRecord, search: CostAwareSearch) -> dict[str, float]:
    """Returns what the sweep's ledger says, in seconds and worker-hours."""
    held = list(parts(record, search.session.space))
    training = {
        str(n): sum(r.training_seconds for r in record.reports if r.workers == n) for n in (1, 2)
    }
    return {
        "seconds": sum(seconds for _, seconds in held),
        "worker_hours": sum(cell.workers * seconds for cell, seconds in held) / HOUR,
        **{f"training_seconds_{n}": seconds for n, seconds in training.items() if seconds},
    }


def by_stamps(stamps: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the same from the stamps: a start is charged from the end of the one before."""
    requests = sorted((s for s in stamps if s["what"] == "request"), key=lambda s: s["at"])
    seconds, hours, since, told = 0.0, 0.0, requests[0]["at"], {}
    for request in requests:
        own = [s for s in stamps if s["workers"] == request["workers"]]
        begun = max(s["at"] for s in own if s["what"] == "enter")
        ended = max(s["at"] for s in own if s["what"] == "epoch")
        seconds += ended - since
        hours += request["workers"] * (ended - since) / HOUR
        told[f"training_seconds_{request['workers']}"] = ended - begun
        told[f"until_request_{request['workers']}"] = request["at"] - since
        told[f"until_training_{request['workers']}"] = begun - request["at"]
        since = ended
    return {"seconds": seconds, "worker_hours": hours, **told}


def main() -> None:
    """Makes both runs and prints what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", type=Path, help="file of all figures")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--seconds-an-epoch", type=float, default=4.0, help="on one worker")
    options = parser.parse_args()
    os.environ.update(
        RAY_TRAIN_HEALTH_CHECK_INTERVAL_S="0.1",
        RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    )
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    with tempfile.TemporaryDirectory() as folder:
        fixed = train(Path(folder, "fixed"), options, None)
        moved = train(Path(folder, "moved"), options, options.epochs // 3)
    ledger = by_ledger(moved["record"], moved["search"])
    stamps = by_stamps(moved["stamps"])
    epochs = sorted(moved["losses"])
    result = {
        "epochs": len(epochs),
        "lost_epochs": sorted(set(fixed["losses"]) - set(epochs)),
        "max_loss_difference": max(abs(moved["losses"][e] - fixed["losses"][e]) for e in epochs),
        "last_loss": moved["losses"][epochs[-1]],
        "ledger": ledger,
        "stamps": stamps,
        "off": {key: ledger[key] / stamps[key] - 1 for key in ledger},
        "workers_by_epoch": [[r.epoch, r.workers] for r in moved["record"].reports],
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

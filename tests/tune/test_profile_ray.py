"""A sweep with profiles on a real local Ray, broken off in its middle and restored."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.results.journal import read_journal
from raycosttune.results.rows import Row, read_profiled
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, torch_trainable
from tests.real_ray import address

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
NAME = "sweep"
SAMPLES = 640
GIVE_UP_SECONDS = 240.0


def make_loop(log: Path) -> Callable[[dict[str, Any]], None]:
    """Makes a loop that learns faster on small batches, and notes where it starts."""

    def train_loop(config: dict[str, Any]) -> None:
        import ray.train  # noqa: PLC0415 - the loop runs in another process
        import torch  # noqa: PLC0415 - as above
        from ray.train.torch import prepare_data_loader, prepare_model  # noqa: PLC0415 - as above

        workers, batch = ray.train.get_context().get_world_size(), config["batch_size"]
        if ray.train.get_context().get_world_rank() == 0:
            with log.open("a") as file:
                file.write(f"{workers}/{batch}\n")
        data = torch.utils.data.TensorDataset(torch.randn(SAMPLES, 4))
        loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch // workers))
        model = prepare_model(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
        for epoch in range(1, 40):
            for (rows,) in loader:
                time.sleep(0.001 * len(rows))
                optimizer.zero_grad()
                model(rows).square().mean().backward()
                optimizer.step()
            accuracy = 1 - 0.8 ** (epoch * (32 / batch) ** 0.5)
            ray.train.report({"accuracy": accuracy, "epoch": epoch})

    return train_loop


def drive(folder: Path) -> CostAwareSearch:
    """Runs a sweep to its end, from where an earlier driver has left it."""
    trainable = torch_trainable(make_loop(folder / "work.log"))
    if is_restorable(folder):
        tuner = tune.Tuner.restore(str(folder / NAME), trainable)
    else:
        goal = Goal(metric="accuracy", mode="max", target=0.1, planned_runs=1)
        tuner = tune.Tuner(
            trainable,
            param_space={
                "num_workers": tune.choice([1, 2]),
                "batch_size": tune.choice([32, 64, 128]),
                "lr": tune.choice([0.1]),
            },
            tune_config=tune.TuneConfig(
                search_alg=CostAwareSearch(goal, profile=True),
                scheduler=CostAwareScheduler(),
                num_samples=-1,
            ),
            run_config=tune.RunConfig(name=NAME, storage_path=str(folder), verbose=0),
        )
    tuner.fit()
    return CostAwareSearch.of(tuner)


def is_restorable(folder: Path) -> bool:
    return any((folder / NAME).glob("experiment_state-*.json"))


def rows_of(folder: Path, *kinds: str) -> list[Row]:
    rows = read_journal(folder / NAME / "raycosttune" / "journal.jsonl")
    return [row for row in rows if row["row"] in kinds]


@pytest.mark.usefixtures("shared_ray")
@pytest.mark.timeout(360)
def test_a_killed_sweep_runs_no_finished_profile_again(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import ray; "
        "from tests.tune.test_profile_ray import drive; "
        "ray.init(sys.argv[3], log_to_driver=False); drive(Path(sys.argv[2]))"
    )
    with (tmp_path / "driver.log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", code, str(ROOT), str(tmp_path), address()],
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not (rows_of(tmp_path, "profiled") and is_restorable(tmp_path)):
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    before = {row["trial_id"] for row in rows_of(tmp_path, "profiled", "ended")}
    worked = (tmp_path / "work.log").read_text().splitlines()
    search = drive(tmp_path)
    ended = [row["trial_id"] for row in rows_of(tmp_path, "profiled", "ended")]
    asked = rows_of(tmp_path, "profile", "asked")
    assert sorted(ended) == sorted(row["trial_id"] for row in asked)
    cells = [
        f"{cell['workers']}/{cell['batch_size']}"
        for row in asked
        if row["trial_id"] not in before
        for cell in row.get("cells", [row])
    ]
    again = (tmp_path / "work.log").read_text().splitlines()[len(worked) :]
    assert sorted(again) == sorted(cells)
    assert rows_of(tmp_path, "asked")
    timed = [read_profiled(row).epoch_seconds for row in rows_of(tmp_path, "profiled")]
    assert all(0.1 < seconds < 60 for cells in timed for seconds in cells.values())
    assert max(map(len, timed)) > 1
    assert search.session.spent > 0

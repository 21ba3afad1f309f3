"""Does a sweep of mixed sizes get through a small cluster whose workers Tune doesn't see?

Runs 50 trials of 1 to 4 workers, in random order and as many at once as there is room for, on four
CPUs. Each trial asks Tune for next to nothing and makes the placement group of its workers itself,
as Ray Train does; every third one is stopped by the scheduler and leaves its group behind. Another
job may hold a CPU meanwhile (`--others 1`). Reported: how many trials came to their end, the most
workers that running trials were promised at once, and the groups left.

Run it in an environment with `ray[default]` and `--dashboard`, and in one without.
"""

import argparse
import importlib.util
import json
import logging
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from killed_sweep import SweepFolder
from ray import tune
from ray.util.placement_group import placement_group, remove_placement_group

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.results.journal import read_journal
from raycosttune.tune import CostAwareScheduler, CostAwareSearch
from raycosttune.tune.collector import job_groups
from raycosttune.tune.resources import DriverResources

CPUS = 4
BUDGET_SECONDS = 600


def main() -> None:
    """Runs the sweep and prints its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--trials", type=int, default=50, help="how many trials")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sizes")
    parser.add_argument("--others", type=int, default=0, help="CPUs that another job holds")
    parser.add_argument("--dashboard", action="store_true", help="start Ray with its dashboard")
    arguments = parser.parse_args()
    if arguments.dashboard and importlib.util.find_spec("aiohttp") is None:
        sys.exit("--dashboard needs ray[default]: install it, or leave --dashboard out")
    ray.init(
        address="local",
        num_cpus=CPUS,
        include_dashboard=arguments.dashboard,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100_000_000,
    )
    try:
        figures = run(arguments.trials, arguments.seed, CPUS, arguments.others)
    finally:
        ray.shutdown()
    figures["dashboard"] = arguments.dashboard
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    room = CPUS - arguments.others
    is_good = figures["ended"] == figures["asked"] == arguments.trials
    is_good = is_good and figures["most_promised"] <= room and not figures["groups_left"]
    sys.exit(0 if is_good else "a trial hangs, or workers were promised twice")


def run(trials: int, seed: int, cpus: int, others: int = 0) -> dict[str, Any]:
    """Runs the sweep on the Ray that is connected and returns its figures.

    Args:
        trials: How many trials.
        seed: Seed of their sizes.
        cpus: CPUs of the cluster.
        others: CPUs of these that another job holds.
    """
    begun = time.monotonic()
    kind: Any = ray.remote(_Holder)
    holder = kind.options(num_cpus=others).remote()
    ray.get(holder.ready.remote())
    space = {
        "num_workers": tune.choice(list(range(1, cpus + 1 - others))),
        "batch_size": tune.choice([12 * k for k in range(1, trials + 1)]),
    }
    rng = random.Random(seed)
    sizes = [rng.randint(1, cpus - others) for _ in range(trials)]
    search = CostAwareSearch(
        Goal(metric="loss", mode="min", target=1e-9, max_epochs=4),
        cost=WorkerHours(),
        max_concurrent=trials,
        space=space,
        points_to_evaluate=[
            {"num_workers": size, "batch_size": 12 * k} for k, size in enumerate(sizes, start=1)
        ],
    )
    with tempfile.TemporaryDirectory(prefix="admission-") as folder:
        tune.run(
            tune.with_resources(_hold_workers, DriverResources({"CPU": 1.0})),
            search_alg=search,
            scheduler=CostAwareScheduler(),
            num_samples=trials,
            storage_path=folder,
            name="sweep",
            time_budget_s=BUDGET_SECONDS,
            verbose=0,
            raise_on_failed_trial=False,
        )
        sweep = SweepFolder(Path(folder))
        deadline = time.monotonic() + 20
        while (groups := job_groups()) and time.monotonic() < deadline:
            time.sleep(0.2)
        ended = sweep.ended()
        return {
            "asked": len(sweep.records()),
            "ended": len(ended),
            "ends": sorted(
                {str(record.ended and record.ended.reason) for record in ended.values()}
            ),
            "sizes": sizes,
            "most_promised": most_promised(sweep.experiment),
            "groups_left": len(groups),
            "seconds": time.monotonic() - begun,
        }


def most_promised(experiment: Path) -> int:
    """Returns the most workers that trials without an end held at once, by the journal."""
    held: dict[str, int] = {}
    most = 0
    for row in read_journal(experiment / "raycosttune" / "journal.jsonl"):
        match row["row"]:
            case "asked":
                held[row["trial_id"]] = row["workers"]
            case "ended":
                held.pop(row["trial_id"])
        most = max(most, sum(held.values()))
    return most


def _hold_workers(config: dict[str, Any]) -> None:
    """Holds workers as a run of Ray Train does; the scheduler stops some, which leak them."""
    group = placement_group([{"CPU": 1}] * config["num_workers"])
    while not group.wait(1):
        pass
    epochs = 9 if config["batch_size"] % 36 == 0 else 3
    for epoch in range(1, epochs + 1):
        time.sleep(0.05)
        tune.report({"loss": 1 / epoch, "epoch": epoch})
    remove_placement_group(group)


class _Holder:
    """Holds a CPU of the cluster as another job does."""

    def ready(self) -> None:
        """Returns once it runs."""


if __name__ == "__main__":
    main()

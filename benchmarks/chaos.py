"""Kills drivers, workers, nodes and heads under sweeps, and checks that nothing is lost.

Each round runs a sweep of short trials on a cluster of real processes, kills one kind of them at
random moments, and lets the sweep go on: Tune starts dead trials again, and a dead driver is
started again with `Tuner.restore`. A dead head takes the cluster along, and a new one is started.
Every fourth round runs Ray Train, the others plain functions. Checked in every round, by the
journal and by a log that the trials write themselves:

* no trial that was asked for is lost, once Tune has made its first snapshot: each has an end in
  the journal and in the search's own records, and none that had ended has changed (`lost_trials`);
* no trial that the journal had as ended works again (`repeated_trials`);
* once the sweep is over no placement group is left, and no process that is still at work, nor
  any at all once the cluster is gone (`leaked_placement_groups`, `leaked_processes`);
* the sweep ends by itself, with a plan.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos_cluster import ChaosCluster, adopt_orphans
from chaos_round import Chaos, Round

KINDS = ("driver", "worker", "node", "driver", "worker", "node", "head")


def main() -> None:
    """Runs the rounds and prints their sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--rounds", type=int, default=20, help="how many rounds")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is killed, and when")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="what is killed, in turn")
    parser.add_argument("--seconds", type=float, default=1200.0, help="begin no round after these")
    parser.add_argument("--keep", type=Path, help="move the folders of bad rounds here")
    arguments = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="chaos-ray-", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder  # else a bare ray.init() elsewhere joins this cluster
        figures = run_rounds(arguments)
    print(json.dumps({key: value for key, value in figures.items() if key != "each"}, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    bad = [figure["number"] for figure in figures["each"] if figure["is_bad"]]
    sys.exit(f"bad rounds: {bad}" if bad or figures["leaked_at_the_end"] else 0)


def run_rounds(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs round after round on one cluster and sums up."""
    begun, rounds, outlived = time.monotonic(), [], {}
    rng = random.Random(arguments.seed)
    cluster = ChaosCluster(rng)
    try:
        for number in range(arguments.rounds):
            if time.monotonic() - begun > arguments.seconds:
                break
            kind = arguments.kinds[number % len(arguments.kinds)]
            one = Round(number, kind, is_train=number % 4 == 2)
            with Chaos(one, cluster, rng) as chaos:
                chaos.run(arguments.keep)
                cluster = chaos.cluster
            rounds.append(one)
            print(one, flush=True)
    finally:
        outlived = cluster.stop()
    return {
        "rounds": len(rounds),
        "seed": arguments.seed,
        "lost_trials": sum(len(one.lost) for one in rounds),
        "repeated_trials": sum(len(one.repeated) for one in rounds),
        "leaked_placement_groups": sum(one.groups for one in rounds),
        "leaked_processes": sum(len(one.processes) for one in rounds) + len(outlived),
        "leaked_at_the_end": list(outlived.values()),
        "every_sweep_ended_with_a_plan": all(one.plan for one in rounds),
        "kills": sum(len(one.kills) for one in rounds),
        "trials": sum(one.trials for one in rounds),
        "seconds": time.monotonic() - begun,
        "each": [{**asdict(one), "is_bad": one.is_bad} for one in rounds],
    }


if __name__ == "__main__":
    main()

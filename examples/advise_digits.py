"""Profiles the digits job for a minute, and says what limits it and what a sweep should try.

Usage: python examples/advise_digits.py [--smoke] [--storage DIR]

The same from the command line, in this folder:

    raycosttune advise advise_digits:make_job --batch 128
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from digits import WIDTH, load, network
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from raycosttune.advise import Cluster, guide
from raycosttune.train import profile_job
from raycosttune.train.probe_report import report_data, report_lines
from raycosttune.tune import suggest_space

Criterion = Callable[[Tensor, Tensor], Tensor]
BATCH = 128
CLUSTER = Cluster(workers=2)


def make_job() -> tuple[nn.Module, TensorDataset, Criterion]:
    """Returns what a worker of the digits example trains: model, dataset and loss."""
    training, _ = load()
    dataset = TensorDataset(training.images, training.labels)
    return network(WIDTH), dataset, cross_entropy


def main(argv: Sequence[str] | None = None) -> None:
    """Profiles, prints the advice and writes it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="fewer steps, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    options = parser.parse_args(argv)
    batch = 16 if options.smoke else BATCH
    profile = profile_job(
        "advise_digits:make_job",
        batch,
        steps=2 if options.smoke else 10,
        memory=not options.smoke,
    )
    found = guide(profile, CLUSTER)
    print(f"digits on at most {CLUSTER.workers} workers, batch {batch}")
    for line in report_lines(found, None):
        print(line)
    for key, domain in suggest_space(profile, CLUSTER).items():  # as Tune's param_space
        print(f"{key}: {domain.categories}")
    options.storage.mkdir(parents=True, exist_ok=True)
    path = options.storage / "advise_digits.json"
    path.write_text(json.dumps(report_data(profile, found, None), indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()

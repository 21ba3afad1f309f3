"""Profiles the digits job for a minute, and says what limits it and what a sweep should try.

Usage: python examples/advise_digits.py [--smoke] [--storage DIR]

The same from the command line, in this folder:

    raycosttune advise digits_task:make_job --batch 128
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from raycosttune.advise import Cluster, guide
from raycosttune.train import profile_job
from raycosttune.train.probe_report import report_data, report_lines
from raycosttune.tune import suggest_space

BATCH = 128
CLUSTER = Cluster(workers=2)


def main(argv: Sequence[str] | None = None) -> None:
    """Profiles, prints the advice and writes it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="fewer steps, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    options = parser.parse_args(argv)
    batch = 16 if options.smoke else BATCH
    profile = profile_job(
        "digits_task:make_job",
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

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_ray import address

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path for path in ROOT.glob("examples/*.py") if '__name__ == "__main__"' in path.read_text()
)
IN_DEMO = "digits_sweep"  # `scripts/demo --smoke` runs it; custom_cost sweeps the same job
WORDS = {
    "advise_digits": ["num_workers: [1"],
    "cheapest_instance": ["cheapest: "],
    "custom_cost": ["scored in EUR", "as workers, no trial: ", "spot, no trial: "],
    "deadline_guard": ["with the guard, "],  # whether in time is up to the machine here
    "parameter_server": ["predicted knee: 4 servers"],
    "straggler": ["last epoch, on over off: "],  # how much that is, is up to the machine here
}
JOINING = {"custom_cost", "deadline_guard", "parameter_server"}


def test_the_examples_are_found() -> None:
    assert {path.stem for path in EXAMPLES} == {IN_DEMO, *WORDS}


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(480)
@pytest.mark.parametrize("example", sorted(WORDS.keys() - JOINING - {"straggler"}))
def test_an_example_runs_to_its_end_and_says_so(example: str, tmp_path: Path) -> None:
    run(example, tmp_path)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(480)
@pytest.mark.usefixtures("shared_ray")
@pytest.mark.parametrize("example", sorted(JOINING))
def test_an_example_joins_the_ray_that_is_named(example: str, tmp_path: Path) -> None:
    run(example, tmp_path, RAY_ADDRESS=address())


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(480)
@pytest.mark.usefixtures("shared_ray")
def test_the_callback_alone_turns_rebalancing_on(tmp_path: Path) -> None:
    said = run("straggler", tmp_path, RAY_ADDRESS=address())
    off, on = said.split("rebalancing on\n")
    rows = [line for line in off.splitlines() if "|" in line]
    assert rows
    assert all(row.endswith("not measured") for row in rows)
    assert [line for line in on.splitlines() if "|" in line and "not measured" not in line]


def run(example: str, storage: Path, **variables: str) -> str:
    """Returns what an example prints."""
    ran = subprocess.run(
        [
            sys.executable,
            str(ROOT / "examples" / f"{example}.py"),
            "--smoke",
            "--storage",
            str(storage),
        ],
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    assert [words for words in WORDS[example] if words not in ran.stdout] == []
    return ran.stdout

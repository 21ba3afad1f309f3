import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raycosttune.advise import profile_from_data
from raycosttune.cli import main

MINE = """
import torch

class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(200_000))

    def forward(self, x):
        return (x * self.scale * self.scale).mean(1)

def make_job():
    samples = torch.randn(1024, 1)
    return Wide(), torch.utils.data.TensorDataset(samples, samples[:, 0])
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_function_in_the_working_directory_is_profiled_and_advised(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), *sys.path]))
    few = ("--steps", "1", "--workers", "2", "--memory", "6e8", "--json")
    ran = subprocess.run(
        [sys.executable, "-m", "raycosttune", "advise", "mine:make_job", "--batch", "16", *few],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "measuring the memory" in ran.stderr
    told = json.loads(ran.stdout)
    assert [row["workers"] for row in told["scaling"]] == [1, 2]
    assert told["limits"].keys() == {"compute", "loading", "sync", "memory"}
    assert told["algorithms"] is None
    profile = profile_from_data(told["profile"])
    assert (profile.batch_size, profile.samples, profile.parameter_bytes) == (16, 1024, 8e5)
    memory, pair = profile.memory, profile.pair
    assert memory is not None
    # Each sample keeps 0.8 MB twice, and gets gradients of both. What the allocator keeps of
    # freed memory, up to as much again in small batches, doesn't count.
    assert 2.9e6 < memory.line.sample_bytes < 3.5e6
    assert 60 <= memory.largest_batch < 130
    assert told["sweep"]["max_local_batch"] == memory.largest_batch
    assert pair is not None
    assert (pair.samples, profile.crowding >= 1) == (8, True)
    assert min(pair.step_seconds, pair.exchange_seconds, pair.latency_seconds) > 0


def advise(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["advise", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("nothing", "--batch", 4), "must be module:function"),
        (("tests.train.probe_ends:refuse", "--batch", 4), "makes no job: nothing fits"),
        (("math:pi", "--batch", 0), "x>=1"),
        (("math:pi",), "--batch"),
        (("math:pi", "--batch", 4, "--bandwidth", "nan"), "bytes_per_second must be"),
        (("math:pi", "--batch", 4, "--memory", -1), "memory_bytes must be"),
        (("math:pi", "--batch", 4, "--device", "warp"), "--device must be"),
        (("math:pi", "--batch", 4, "--device", "cuda:99"), "--device must be"),
    ],
)
def test_advice_that_cannot_be_given_is_told_and_exits_with_2(
    arguments: tuple[object, ...], what: str
) -> None:
    result = advise(*arguments)
    assert result.exit_code == 2, result.output
    assert what in result.output
    assert "Traceback" not in result.output

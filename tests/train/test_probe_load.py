import sys
from pathlib import Path

import pytest

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_job import Job
from raycosttune.train.probe_load import load_job

HERE = "tests.train.probe_jobs"


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("module", "must be module:function, got 'module'"),
        (":small", "must be module:function"),
        ("no_such_module:small", "raised ModuleNotFoundError"),
        (f"{HERE}:absent", "raised AttributeError"),
        (f"{HERE}:broken", "raised OSError: no data here"),
        (f"{HERE}:broken", "tests/train/probe_jobs.py, line "),
        (f"{HERE}:leaving", "raised SystemExit: 3"),
        (f"{HERE}:no_job", "makes no job: it must return (model, sample)"),
        (f"{HERE}:no_job", "or a model alone, got str"),
        (f"{HERE}:empty", "its dataset must have at least 1 sample, got none"),
        (f"{HERE}:endless", "its dataset must have a length and samples by number, got Endless"),
        (f"{HERE}:wants", "it must take no argument, got wants(config: object)"),
        (f"{HERE}:SAMPLES", "it must be a function, got int"),
    ],
)
def test_what_makes_no_job_is_told_in_one_line(target: str, what: str) -> None:
    with pytest.raises(InvalidAdviceError) as caught:
        load_job(target)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_alone.py").write_text(
        "import torch\n\ndef make_model():\n    return torch.nn.Linear(3, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    job = load_job("mine_alone:make_model")
    assert isinstance(job, Job)
    assert job.batch(4).shape == (4, 3)


def test_a_class_of_models_is_a_function_too() -> None:
    assert load_job(f"{HERE}:Wide").parameter_bytes == 4e6

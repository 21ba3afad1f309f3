import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import raycosttune
import raycosttune.train
import raycosttune.tune

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "raycosttune").rglob("*.py"))
FILES = [
    *PACKAGE,
    *(
        path
        for folder in ("tests", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ),
]


def python(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def test_each_layer_imports_only_the_layers_below_it() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, raycosttune; print(sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(ast.literal_eval(python(code)))
    assert "raycosttune" in loaded
    assert not loaded & {"ray", "torch", "optuna", "sklearn", "scipy", "clarabel"}


def test_a_trial_and_its_workers_load_nothing_of_the_search() -> None:
    code = (
        "import sys, raycosttune.tune.trainable, raycosttune.train.meter, "
        "raycosttune.train.settings, raycosttune.train.profile_steps; print(sorted(sys.modules))"
    )
    loaded = set(ast.literal_eval(python(code)))
    assert "raycosttune.tune.trainable" in loaded
    assert not loaded & {"optuna", "sklearn", "scipy", "clarabel", "raycosttune.core.session"}


def test_the_core_knows_no_ray_at_run_time() -> None:
    code = (
        "import sys, raycosttune.core.session; print('ray' in sys.modules, 'torch' in sys.modules)"
    )
    assert python(code) == "False False"


def test_the_public_names() -> None:
    assert sorted(raycosttune.__all__) == [
        "Allocation",
        "Bound",
        "CostMetric",
        "Dollars",
        "EnergyKWh",
        "Goal",
        "InvalidAdviceError",
        "InvalidCostError",
        "InvalidGoalError",
        "InvalidLoaderError",
        "InvalidModelError",
        "InvalidPriceSheetError",
        "InvalidRebalanceError",
        "InvalidSpaceError",
        "InvalidStateError",
        "InvalidTrainableError",
        "InvalidWorkloadError",
        "LearningRate",
        "NoPlan",
        "NoPlanError",
        "NodeHours",
        "NodePrice",
        "Plan",
        "PowerUnknownError",
        "PriceSheet",
        "RayCostTuneError",
        "RunBudget",
        "WeightedSum",
        "WorkerHours",
        "__version__",
        "read_price_sheet",
        "read_sweep",
    ]
    for name in raycosttune.__all__:
        assert getattr(raycosttune, name) is not None


def test_the_public_names_of_a_training_loop() -> None:
    assert sorted(raycosttune.train.__all__) == [
        "Balance",
        "DBS",
        "Equal",
        "Job",
        "RebalanceCallback",
        "SampleMean",
        "clip_gradients",
        "prepare_data_loader",
        "prepare_model",
        "profile_job",
        "rebalance",
        "report",
        "resume",
    ]
    for name in raycosttune.train.__all__:
        assert getattr(raycosttune.train, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'ballance'"):
        _ = raycosttune.train.ballance  # type: ignore[attr-defined]


def test_the_public_names_of_a_sweep() -> None:
    assert sorted(raycosttune.tune.__all__) == [
        "CostAwareScheduler",
        "CostAwareSearch",
        "Progress",
        "SweepMetrics",
        "function_trainable",
        "suggest_space",
        "torch_trainable",
    ]
    for name in raycosttune.tune.__all__:
        assert getattr(raycosttune.tune, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Schedular'"):
        _ = raycosttune.tune.Schedular  # type: ignore[attr-defined]


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Goals'"):
        _ = raycosttune.Goals  # type: ignore[attr-defined]


def test_every_error_has_one_base_and_is_public() -> None:
    named = {
        name
        for name, value in vars(raycosttune.errors).items()
        if isinstance(value, type) and issubclass(value, raycosttune.RayCostTuneError)
    }
    assert named <= set(raycosttune.__all__)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_at_most_300_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


def test_half_of_the_modules_have_at_most_130_lines() -> None:
    lengths = [len(path.read_text().splitlines()) for path in PACKAGE if path.stat().st_size]
    assert statistics.median(lengths) <= 130


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_of_the_package_pickles(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert not imported & {"cloudpickle", "dill", "marshal", "pickle", "shelve"}

"""The notebook, executed as a reader would."""

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
ROOT = Path(__file__).parents[2]
FIGURES = 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_the_tour_runs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    tour = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in tour.cells)  # kept without what it shows
    nbclient.NotebookClient(tour, timeout=100, kernel_name="python3").execute()
    outputs: list[Any] = [out for cell in tour.cells for out in cell.get("outputs", ())]
    printed = "".join(out["text"] for out in outputs if out["output_type"] == "stream")
    assert "nothing untried can save more than" in printed
    assert "your default: " in printed
    assert "tour.html" in printed
    figures = [out for out in outputs if "application/vnd.plotly.v1+json" in out.get("data", {})]
    assert len(figures) == FIGURES

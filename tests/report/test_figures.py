import json
from pathlib import Path
from typing import Any

import pytest

import raycosttune
from raycosttune import report
from raycosttune.errors import InvalidStateError
from raycosttune.report import View, read_sweep
from tests.report.sweeps import KINDS, empty, finished, running

FIGURES = [name for name in report.__all__ if name.startswith("plot_")]


def draw(name: str, view: View) -> Any:
    return getattr(report, name)(view)


@pytest.mark.parametrize("write", KINDS)
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_of_every_sweep(name: str, write: object, tmp_path: Path) -> None:
    assert callable(write)
    figure = draw(name, read_sweep(write(tmp_path)))
    assert json.loads(figure.to_json())["layout"]
    assert bool(figure.data) != bool(figure.layout.annotations and not figure.data)


def texts(figure: Any) -> list[str]:
    found: list[str] = []
    for trace in figure.data:
        told = trace.hovertext if trace.hovertext is not None else trace.text
        for item in told or ():
            found += [item] if isinstance(item, str) else list(item)
    return found


def test_cost_against_time_has_the_deadline_the_front_and_each_configuration(
    tmp_path: Path,
) -> None:
    view = read_sweep(finished(tmp_path))
    figure = draw("plot_cost_against_time", view)
    assert [trace.name for trace in figure.data] == [
        "Pareto front",
        "predicted",
        "measured",
        "the plan",
    ]
    assert figure.layout.shapes[0].x0 == 100
    assert sum(len(trace.x) for trace in figure.data[1:]) == len(view.choices)
    assert any(text.startswith("1 worker, batch 32, lr=0.1<br>") for text in texts(figure))


def test_heat_maps_mark_what_is_measured_and_say_the_bounds(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    figure = draw("plot_epoch_seconds", view)
    labels = [label for row in figure.data[0].text for label in row]
    assert sum(label.startswith("●") for label in labels) == 3
    assert sum(label.startswith("★") for label in labels) == 1
    assert all("bounds" in text for text in texts(figure))
    epochs = draw("plot_epochs", view)
    assert list(epochs.data[0].x) == ["32", "64"]
    assert list(epochs.data[0].y) == ["lr=0.1", "lr=0.2"]


def test_learning_curves_say_where_and_why_each_ended(tmp_path: Path) -> None:
    figure = draw("plot_learning_curves", read_sweep(finished(tmp_path)))
    assert any(
        "b: 1 worker, batch 64, lr=0.1<br>epoch 2, 0.5<br>can't win" in t for t in texts(figure)
    )
    assert any("expected at the target after" in text for text in texts(figure))
    assert figure.layout.shapes[0].y0 == 0.9


def test_many_learning_curves_are_summed_up(tmp_path: Path) -> None:
    view = read_sweep(running(tmp_path))
    many = View(**{**vars(view), "trials": view.trials * 100})
    figure = draw("plot_learning_curves", many)
    assert figure.data[1].name == "tenth to nine tenths of 200 trials"
    assert len(figure.data) <= 3 + 40 + 40


def test_the_timeline_counts_the_workers_held(tmp_path: Path) -> None:
    figure = draw("plot_timeline", read_sweep(finished(tmp_path)))
    held = figure.data[-1]
    assert max(held.y) == 4
    assert held.y[0] == 2  # the profile's
    assert held.y[-1] == 0
    assert {trace.name for trace in figure.data[:-1]} == {
        "reached",
        "stopped",
        "failed",
        "out of memory",
    }


def test_the_spend_adds_up(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    figure = draw("plot_spend", view)
    assert sum(trace.y[-1] for trace in figure.data) == pytest.approx(view.spent)
    for trace in figure.data:
        assert list(trace.y) == sorted(trace.y)


def test_workers_show_compute_idle_and_shares(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    figure = draw("plot_workers", view)
    assert list(figure.data[0].y) == [1.5, 0.75]
    assert list(figure.data[1].y) == [0.0, 0.75]
    assert list(figure.data[2].y) == [16, 16, 16]
    other = report.plot_workers(view, "b")
    assert "No trial reports its workers" in other.layout.annotations[0].text.replace("<br>", " ")


def test_an_empty_sweep_s_figures_say_why_they_are_empty(tmp_path: Path) -> None:
    view = read_sweep(empty(tmp_path))
    for name in FIGURES:
        assert draw(name, view).layout.annotations[0].text


@pytest.mark.parametrize("name", [*FIGURES, "render_page"])
def test_a_sweep_as_the_other_reader_returns_it_is_drawn_too(name: str, tmp_path: Path) -> None:
    past, view = raycosttune.read_sweep(finished(tmp_path)), read_sweep(tmp_path)
    one, other = (getattr(report, name)(sweep) for sweep in (past, view))
    if name.startswith("plot_"):
        one, other = one.to_json(), other.to_json()
    assert len(one) == len(other)


@pytest.mark.parametrize("given", ["~/ray_results/mine", None, {}])
def test_what_is_no_sweep_is_refused_with_what_to_write(given: object) -> None:
    with pytest.raises(InvalidStateError, match=r"plot_cost must be given a sweep, got .*Write"):
        report.plot_cost(given)  # type: ignore[arg-type]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plot_costs'"):
        _ = report.plot_costs  # type: ignore[attr-defined]

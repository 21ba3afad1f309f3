"""What a report shows of a sweep among types of machine."""

from raycosttune.core.cost import WorkerHours
from raycosttune.core.node_type import NodeType
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.report import sweep_of
from raycosttune.report.heat import plot_cost, plot_epoch_seconds
from raycosttune.report.page import render_page
from raycosttune.report.savings import savings
from raycosttune.report.study import write_study
from tests.core.drive import Job, goal

MARKUP = "<b>new</b>"
TYPES = NodeType("old", 1), NodeType(MARKUP, 1)
SPACE = Space((1, 2), (32, 64), node_types=TYPES)
JOB = Job({cell: 100 / cell.workers for cell in SPACE.cells}, {32: 4, 64: 5})


def swept() -> Session:
    session = Session(SPACE, goal(), cost=WorkerHours(), clock=float)
    for k, cell in enumerate(cell for cell in SPACE.cells if cell.batch_size == 32):
        session.adopt(JOB.record(session.goal, cell, f"t{k}"))
    return session


def test_cells_of_two_types_are_rows_of_their_own() -> None:
    view = sweep_of(swept())
    assert {(cell.node_type, cell.workers) for cell in view.cells} == {
        (name, n) for name in ("old", MARKUP) for n in (1, 2)
    }
    for figure in (plot_epoch_seconds(view), plot_cost(view)):
        (heat,) = figure.data
        assert list(heat.y) == [f"{n} of {name}" for name in (ESCAPED, "old") for n in (1, 2)]
        assert MARKUP not in str(figure)
        assert any("2 workers of old, batch 32" in told for row in heat.hovertext for told in row)


ESCAPED = "&lt;b&gt;new&lt;/b&gt;"


def test_plan_and_trials_name_the_type_and_no_markup_gets_through() -> None:
    view = sweep_of(swept())
    assert view.plan is not None
    assert view.plan.config["node_type"] in ("old", MARKUP)
    assert {trial.node_type for trial in view.trials} == {"old", MARKUP}
    assert any(f"of {MARKUP}, batch 32" in trial.what for trial in view.trials)
    assert MARKUP not in render_page(view)
    assert savings(view, (2, 32))


def test_a_study_has_the_type_as_a_parameter() -> None:
    study = write_study(sweep_of(swept()), "sqlite:///:memory:")
    assert {trial.params["node_type"] for trial in study.trials} == {"old", MARKUP}

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

import raycosttune
from raycosttune import (
    Allocation,
    Bound,
    Dollars,
    InvalidCostError,
    InvalidGoalError,
    InvalidStateError,
    LearningRate,
    NodeHours,
    NodePrice,
    NoPlan,
    Plan,
    PriceSheet,
    RunBudget,
    WorkerHours,
)
from raycosttune.core.observation import Ended, Observation, Report
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from raycosttune.results.past_plan import PastPlan
from raycosttune.results.past_sweep import PastSweep, read_sweep
from raycosttune.results.rows import (
    Row,
    asked_row,
    observation_row,
    profile_row,
    profiled_row,
    run_header_row,
    run_report_row,
)
from tests.core.drive import Factors, Simulation, amdahl, goal

SPACE = Space((1, 2, 4), (32, 64, 128), workers_per_node=2)
GOAL = goal(deadline_seconds=900)
BUDGET = RunBudget(cost=NodeHours(), at_most=1e-6)
RATE = LearningRate(reference_batch=32, rule="sqrt")


def swept(rate: LearningRate | None = None) -> Session:
    job, cost = amdahl(SPACE, startup_seconds=2.0), WorkerHours()
    recipes = Factors([1.0, 0.9]) if rate else None
    sweep = Simulation(SPACE, GOAL, job, cost=cost, proposer=recipes, learning_rate=rate)
    sweep.run()
    return sweep.session


def written(folder: Path, session: Session, header: Row) -> Path:
    """Writes a sweep's journal into its folder and returns the folder."""
    journal = Journal(folder / "raycosttune" / "journal.jsonl")
    journal.append(header)
    for profile in session.profiles.values():
        journal.append(profile_row(profile))
        if profile.shown is not None:
            journal.append(profiled_row(profile.trial_id, profile.shown))
    for record in session.records.values():
        journal.append(asked_row(record))
        told: list[Observation] = [*record.reports, *([record.ended] if record.ended else [])]
        journal.append(*(observation_row(record.trial_id, observation) for observation in told))
    return folder


def test_a_sweep_read_again_has_its_plan(tmp_path: Path) -> None:
    session = swept(RATE)
    header = header_row(GOAL, "worker-hours", SPACE, RATE)
    sweep = read_sweep(written(tmp_path / "RUN", session, header))
    assert raycosttune.read_sweep is read_sweep
    assert (sweep.space, sweep.goal, sweep.learning_rate) == (SPACE, GOAL, RATE)
    assert sweep.name == "RUN"
    plan, known = sweep.plan(), session.plan()
    assert isinstance(plan, PastPlan)
    assert isinstance(known, Plan)
    assert all(getattr(plan, item.name) == getattr(known, item.name) for item in fields(known))
    assert plan.config is None  # a simulated sweep has no search space of Tune's
    assert str(plan) in sweep.explain()
    assert sweep.pareto() == session.pareto()
    assert read_sweep(tmp_path / "RUN" / "raycosttune" / "journal.jsonl") == sweep


def test_another_cost_and_another_goal_need_no_trial(tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "worker-hours", SPACE)))
    sheet = PriceSheet((NodePrice(name="a", per_hour=36.0, workers=2),))
    plan = sweep.plan(cost=Dollars(sheet))
    assert isinstance(plan, Plan)
    assert plan.unit == "USD"
    assert plan.predicted_cost.mid == pytest.approx(
        0.01 * plan.predicted_seconds.mid * -(-plan.allocation.workers // 2), rel=0.05
    )
    soon = sweep.plan(goal=replace(GOAL, deadline_seconds=60, metric=None, mode=None))
    assert isinstance(soon, NoPlan)
    assert "within 60 s" in soon.reason
    assert isinstance(sweep.plan(goal=replace(GOAL, deadline_seconds=None)), Plan)


def test_a_journal_without_a_space_has_that_of_its_cells(tmp_path: Path) -> None:
    session = swept()
    cells = tuple(SPACE.cells[-2:])
    shown = Profiled(dict.fromkeys(cells, 9.0), 30.0, 2.0)
    session.profiles["p"] = ProfileRecord("p", Profile(cells), shown)
    header = header_row(GOAL, "worker-hours")
    del header["cells"], header["learning_rate"]
    sweep = read_sweep(written(tmp_path, session, header))
    tried = {record.allocation for record in session.records.values()} | set(cells)
    assert set(sweep.space.cells) == tried
    assert sweep.learning_rate is None
    assert isinstance(sweep.plan(), Plan)


def test_reports_that_only_a_runs_own_journal_has_count(tmp_path: Path) -> None:
    session = Session(SPACE, GOAL, clock=lambda: 0.0)
    session.ask("t")
    written(tmp_path, session, header_row(GOAL, "node-hours", SPACE))
    own = Journal(tmp_path / "raycosttune" / "trials" / "t.jsonl")
    reports = [Report(float(k), None, 5.0, 1.0 if k == 1 else 0.0) for k in (1, 2, 3)]
    own.append(run_header_row("t"))
    own.append(*(run_report_row("t", r, {"accuracy": r.epoch / 3}) for r in reports))
    assert isinstance(read_sweep(tmp_path).plan(), Plan)
    own_path = tmp_path / "raycosttune" / "trials" / "t.jsonl"
    own_path.unlink()
    own_path.mkdir()
    assert not isinstance(read_sweep(tmp_path).plan(), Plan)


def test_a_sweep_scored_in_a_unit_of_its_own_asks_for_the_cost(tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "EUR", SPACE)))
    with pytest.raises(
        InvalidCostError, match="scored in EUR, by a metric that its journal doesn't hold"
    ):
        sweep.plan()
    assert isinstance(sweep.plan(cost=NodeHours()), Plan)


def test_a_sweep_scored_in_money_has_its_plan_without_the_sheet(tmp_path: Path) -> None:
    cost = Dollars(PriceSheet((NodePrice(name="a", per_hour=3.0),)))
    header = header_row(GOAL, cost.unit, SPACE, cost=cost)
    sweep = read_sweep(written(tmp_path, swept(), header))
    assert sweep.cost == cost
    assert sweep.plan() == sweep.plan(cost=cost)
    assert sweep.explain() == sweep.explain(cost=cost)
    assert "USD" in str(sweep.plan())


def test_a_sweep_read_again_says_why_its_trials_were_started(tmp_path: Path) -> None:
    session = Session(SPACE, GOAL, cost=WorkerHours(), clock=lambda: 0.0)
    session.ask("a")
    row = asked_row(session.records["a"], "is cheap")
    journal = Journal(tmp_path / "raycosttune" / "journal.jsonl")
    journal.append(header_row(GOAL, "worker-hours", SPACE), row)
    assert "Started because it is cheap." in read_sweep(tmp_path).explain()


def test_a_goal_of_another_metric_is_refused(tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "node-hours", SPACE)))
    with pytest.raises(InvalidGoalError, match="the metric and mode that the sweep reported"):
        sweep.prior(replace(GOAL, metric="loss", mode="min"))


@pytest.mark.parametrize("samples", [0, -1.0, float("nan"), "4", True])
def test_samples_must_be_positive(samples: float, tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "node-hours", SPACE)))
    with pytest.raises(InvalidStateError, match="samples must be a positive number"):
        sweep.scaled(samples)
    assert sweep.scaled(2).scaled(3).samples == 6


def test_other_data_and_other_machines_have_no_plan_before_a_sweep(tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "node-hours", SPACE)))
    with pytest.raises(InvalidStateError, match="got other data @ "):
        sweep.scaled(2).plan()
    with pytest.raises(InvalidStateError, match="got other machines @ "):
        sweep.on_other_machines().explain(goal=sweep.goal)
    assert sweep.scaled(2).scaled(0.5).plan() == sweep.plan()


def test_trials_of_the_past_are_named_after_their_sweep_and_have_ended(tmp_path: Path) -> None:
    session = Session(SPACE, GOAL, clock=lambda: 0.0)
    session.ask("t")
    session.tell("t", Report(1.0, 0.1, 5.0))
    sweep = read_sweep(written(tmp_path / "RUN", session, header_row(GOAL, "EUR", SPACE)))
    (record,) = sweep.prior(GOAL).records
    assert record.trial_id == "RUN/t"
    assert record.ended == Ended(record.ended.cause, "its sweep broke off") if record.ended else 0
    assert not record.is_live


def header(**changes: object) -> Row:
    return {**header_row(GOAL, "node-hours", SPACE, RATE), **changes}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (header(cells={"workers": [1]}), "hold rules for cells"),
        (header(cells=[1]), "hold rules for cells"),
        (header(cells={"workers": [0], "batches": [1]}), "hold rules for cells"),
        (header(learning_rate={"rule": "sqrt"}), "hold a learning rate"),
        (header(learning_rate={"reference_batch": 0}), "hold a learning rate"),
        (header(goal=None), "hold a goal"),
        (header(goal={"target": "high"}), "target"),
        (header(cells=None), "on machines of one size"),
    ],
)
def test_a_journal_that_says_too_little_is_refused(tmp_path: Path, row: Row, why: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(InvalidStateError, match=why) as caught:
        read_sweep(path)
    assert str(path) in str(caught.value)


class Own(WorkerHours):
    """Is a metric that no journal can hold."""


def test_bounds_and_budgets_are_kept_in_the_journal_but_for_those_of_own_metrics(
    tmp_path: Path,
) -> None:
    bound, budget = Bound(metric="latency", at_most=20), RunBudget(cost=NodeHours(), at_most=9)
    own = RunBudget(cost=Own(), at_most=9)
    limits = replace(GOAL, constraints=(budget, own, bound))
    session = Session(SPACE, limits, clock=lambda: 0.0)
    session.ask("t")
    session.tell("t", Report(1.0, 1.0, 5.0, others=(("latency", 30.0),)))
    written(tmp_path, session, header_row(limits, "node-hours", SPACE))
    ran = Journal(tmp_path / "raycosttune" / "trials" / "t.jsonl")
    report = Report(2.0, None, 5.0)
    ran.append(run_header_row("t"), run_report_row("t", report, {"accuracy": 1, "latency": 10}))
    sweep = read_sweep(tmp_path)
    assert sweep.goal.constraints == (budget, bound)
    plan = sweep.plan()
    assert isinstance(plan, Plan)
    assert plan.epochs == 2
    loose = sweep.plan(goal=replace(sweep.goal, constraints=()))
    assert isinstance(loose, Plan)
    assert loose.epochs == 1


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidStateError, match="found none @"):
        read_sweep(tmp_path)


@pytest.mark.parametrize("name", ["loop/x", "n" * 300, "nul\0"])
def test_a_path_that_nothing_can_have_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidStateError, match=r"found none @|can't be read"):
        read_sweep(tmp_path / name)


def test_a_home_that_nobody_has_is_refused() -> None:
    with pytest.raises(InvalidStateError, match="found none @ ~"):
        read_sweep("~nobody-has-this-name/run")


def test_what_is_tried_on_machines_of_two_sizes_is_refused(tmp_path: Path) -> None:
    session = Session(SPACE, GOAL, clock=lambda: 0.0)
    for k, cell in enumerate((Allocation(4, 64, 1), Allocation(2, 64, 2))):
        session.adopt(amdahl(SPACE).record(GOAL, SPACE.cells[0], str(k)))
        session.records[str(k)] = replace(session.records[str(k)], allocation=cell)
    row = header_row(GOAL, "node-hours")
    with pytest.raises(InvalidStateError, match="machines of one size"):
        read_sweep(written(tmp_path, session, row))


def test_a_past_sweep_is_a_value(tmp_path: Path) -> None:
    sweep = read_sweep(written(tmp_path, swept(), header_row(GOAL, "node-hours", SPACE)))
    assert isinstance(sweep, PastSweep)
    assert "records" not in repr(sweep)


def test_an_empty_journal_is_told_apart_from_one_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.touch()
    with pytest.raises(InvalidStateError, match=r"got an empty file @ .*begin it anew"):
        read_sweep(path)


def test_a_sweep_read_again_keeps_to_its_budget_of_a_run(tmp_path: Path) -> None:
    session = swept()
    free, bound = (replace(GOAL, constraints=part) for part in ((), (BUDGET,)))
    folders = [
        written(tmp_path / str(k), session, header_row(aim, "worker-hours", SPACE))
        for k, aim in enumerate((free, bound))
    ]
    loose, tight = (read_sweep(folder).plan() for folder in folders)
    assert isinstance(loose, Plan)
    assert isinstance(tight, NoPlan)

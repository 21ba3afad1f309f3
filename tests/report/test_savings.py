from dataclasses import replace
from pathlib import Path

import pytest

from raycosttune.report import View, read_sweep
from raycosttune.report.savings import savings
from tests.report.sweeps import empty, finished


def test_the_search_pays_after_its_spend_over_the_saving(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    first, *_ = savings(view, (4, 32))
    assert view.plan is not None
    assert (first.name, first.what) == ("your default", "4 workers, batch 32")
    assert first.saving == pytest.approx(first.cost - view.plan.cost.mid)
    assert first.in_all == pytest.approx(50 * first.saving - view.spent)
    assert first.pays_after is not None
    assert (first.pays_after - 1) * first.saving < view.spent <= first.pays_after * first.saving


def test_what_costs_less_than_the_plan_never_pays(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    plan = view.plan
    assert plan is not None
    dear = View(**{**vars(view), "plan": replace(plan, cost=replace(plan.cost, mid=1e6))})
    assert all(saving.pays_after is None for saving in savings(dear))


def test_a_late_configuration_is_not_held_against_the_plan(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    hasty = View(**{**vars(view), "goal": replace(view.goal, deadline_seconds=1)})
    assert savings(hasty, (1, 64))[0].note == "is likely to miss the deadline"


def test_the_plan_is_not_held_against_itself(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    assert view.plan is not None
    first, *_ = savings(view, (1, 32))
    assert (first.what, first.note) == ("1 worker, batch 32", "is the plan itself")
    elsewhere = tuple(replace(cell, node_type="v100") for cell in view.cells)
    first, *_ = savings(replace(view, cells=elsewhere), (1, 32))
    assert first.note == ""


def test_without_a_plan_nothing_is_saved(tmp_path: Path) -> None:
    assert savings(read_sweep(empty(tmp_path))) == []

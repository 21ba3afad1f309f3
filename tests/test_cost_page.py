import re
from pathlib import Path
from typing import Any

import pytest

from raycosttune import Allocation, WorkerHours
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.space import Space
from tests.tune.fakes import FakeTune

TEXT = (Path(__file__).parents[1] / "docs" / "cost.md").read_text()
SHEET, *_ = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PRICES, TYPES, ENERGY, LIMITS, LAWS = re.findall(
    r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)


def run(block: str, **names: object) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "page", **names}
    exec(compile(block, "cost.md", "exec"), scope)  # noqa: S102 - the page's own code
    return scope


def test_the_page_prices_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.yaml").write_text(SHEET)
    scope = run(PRICES)
    costs = [scope[name] for name in ("on_demand", "spot", "held", "both")]
    for cost in costs:
        check_cost_metric(cost, Space((1, 2, 4, 8), (64,)).cells)
    eight = Allocation(8, 64)
    on_demand, spot, held, both = (cost(eight, 3600) for cost in costs)
    assert on_demand == held == pytest.approx(2 * 12.24)
    assert 2 * 3.67 < spot < 1.2 * 2 * 3.67
    assert both == pytest.approx(2 * 12.24 + 0.3 * 3)


def test_the_page_searches_among_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.yaml").write_text(SHEET)
    before, _, _ = TYPES.partition("tune.run(")
    scope = run(before, train_loop=lambda config: config)
    search, factory = scope["search"], scope["trainable"]._resources
    ray_tune = FakeTune(search, tmp_path, scope["space"], factory=factory)
    trial = ray_tune.suggest()
    assert trial.config["node_type"] in factory.resources_by_type
    assert search.session.cost.unit == "USD"


def test_the_page_sets_several_limits() -> None:
    goal = run(LIMITS)["goal"]
    assert (len(goal.bounds), len(goal.budgets)) == (1, 1)


def test_the_page_tries_a_cost() -> None:
    scope = run(LAWS, OurCost=WorkerHours)
    scope["test_our_cost_obeys_the_laws"]()


def test_the_page_measures_energy() -> None:
    called: list[bool] = []
    run(ENERGY, train=lambda: called.append(True))
    assert called == [True]

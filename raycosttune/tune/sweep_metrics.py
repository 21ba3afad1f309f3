"""Figures of the whole sweep where a user looks already: Tune's loggers and Ray's metrics."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray import tune
from ray.util.metrics import Gauge

from raycosttune.core.plan import Plan
from raycosttune.core.session import Session
from raycosttune.train import keys
from raycosttune.tune.argument import check_search
from raycosttune.tune.search import CostAwareSearch

logger = logging.getLogger(__name__)
SPENT, COMMITTED = "raycosttune/sweep_spent", "raycosttune/sweep_committed_workers"
BEST, GAP = "raycosttune/sweep_best_cost", "raycosttune/sweep_gap"
EXPERIMENT = "experiment"
DESCRIPTIONS = {
    SPENT: "What the search has spent, in the unit of its cost.",
    COMMITTED: "Workers that running trials hold.",
    BEST: "Cost of a run of the plan, in the unit of the cost.",
    GAP: "Largest fraction of that which anything untried could save.",
    keys.IMBALANCE: "Compute time of the slowest worker over the mean, 1 where even.",
}


class SweepMetrics(tune.Callback):
    """Adds the sweep's figures to each result, and sets them as gauges of Ray's.

    Tune's loggers write what it adds: TensorBoard, CSV and JSON by default, MLflow and W&B
    where their callbacks are given after it. Figures that are not known yet are NaN. Ray exports
    the gauges, tagged with the experiment's name, where ray[default] is installed.

    Args:
        search: The search of the sweep.

    Raises:
        InvalidSpaceError: If it is none.
    """

    def __init__(self, search: CostAwareSearch) -> None:
        check_search(search, CostAwareSearch)
        self._search = search
        self._gauges: dict[str, Gauge] = {}
        self._name = ""
        self._is_broken = False

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the gauges behind: Tune saves its callbacks."""
        return {**self.__dict__, "_gauges": {}}

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Any],
        trial: Any,  # noqa: ANN401 - Tune's Trial, or a stand-in
        result: dict[str, Any],
        **info: object,
    ) -> None:
        """See ray.tune.Callback.on_trial_result."""
        del iteration, trials, info
        if self._is_broken:
            return
        with self._harmless():
            self._name = str(getattr(trial.storage, "experiment_dir_name", "") or "")
            told = figures(self._search.session)
            result.update(told)
            self._set({**told, keys.IMBALANCE: result.get(keys.IMBALANCE)})

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ANN401 - as above
        """See ray.tune.Callback.on_trial_complete; no result says that the workers are free."""
        del iteration, trials, trial, info
        self._tell()

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ANN401 - as above
        """See ray.tune.Callback.on_trial_error; likewise."""
        del iteration, trials, trial, info
        self._tell()

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:  # noqa: ANN401 - Tune's own
        """See ray.tune.Callback.on_experiment_end; likewise."""
        del trials, info
        self._tell()

    def _tell(self) -> None:
        """Sets the gauges where there is no result to add to."""
        if self._is_broken or not self._gauges:
            return
        with self._harmless():
            self._set(dict(figures(self._search.session)))

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            # A figure of a sweep must never end it.
            logger.exception("the sweep's figures can't be logged any more; the sweep goes on")
            self._is_broken = True

    def _set(self, told: dict[str, float | None]) -> None:
        for key, value in told.items():
            if value is None or not math.isfinite(value):
                continue
            if key not in self._gauges:
                self._gauges[key] = Gauge(key.replace("/", "_"), DESCRIPTIONS[key], (EXPERIMENT,))
            self._gauges[key].set(value, {EXPERIMENT: self._name})


def figures(session: Session) -> dict[str, float]:
    """Returns what a sweep has spent, holds, found and could still save."""
    plan = session.plan()
    found = plan if isinstance(plan, Plan) else None
    return {
        SPENT: plan.spent,
        COMMITTED: float(session.committed_workers),
        BEST: math.nan if found is None else found.predicted_cost.mid,
        GAP: math.nan if found is None else found.certificate.gap,
    }

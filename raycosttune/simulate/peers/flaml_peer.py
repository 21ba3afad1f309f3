"""FLAML's BlendSearch."""

import itertools
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import Peer, PeerTrial

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # FLAML says at every import that its AutoML is left out
    from flaml import tune
    from flaml.tune.searcher.blendsearch import BlendSearch

MOST_ASKED = 50
NOISY = ("optuna", "ray.tune.search.optuna.optuna_search")
Config = dict[str, int]


class FlamlBlendSearch(Peer):
    """Drives FLAML's BlendSearch: local search from cheap cells, blended with Optuna's TPE.

    It is given ordered grids, the fewest workers as the low-cost start, two cells to try first
    (the middle worker count, then the most, each with the middle batch: its local search
    starts only from a run that keeps the constraints), what each run cost, the holes as a
    constraint on the configuration, and shortfall and seconds as constraints on the metrics,
    where a run that missed counts with its next evaluation. A cell that was already run is
    answered from its record at no charge.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        super().__init__(space, goal, cost, seed)
        self._cells = frozenset(space.cells)
        self._known: dict[Allocation, PeerTrial] = {}
        self._ids = (f"suggestion-{k}" for k in itertools.count())
        self._asked: tuple[str, Config] | None = None
        self._limits = {"shortfall": 0.0}
        if goal.deadline_seconds is not None:
            self._limits["seconds"] = goal.deadline_seconds
        counts = sorted({cell.workers for cell in space.cells})
        with _quiet():
            self._search = BlendSearch(
                metric="cost",
                mode="min",
                space={
                    "workers": tune.randint(0, len(space.workers)),
                    "batch": tune.randint(0, len(space.batches)),
                },
                low_cost_partial_config=self._middle(counts[0]),
                points_to_evaluate=[
                    self._middle(n) for n in (counts[(len(counts) - 1) // 2], counts[-1])
                ],
                cost_attr="cost",
                config_constraints=[(self._is_hole, "<=", 0.0)],
                metric_constraints=[(name, "<=", limit) for name, limit in self._limits.items()],
                seed=seed,
            )

    def ask(self) -> Allocation | None:
        """See Peer."""
        if len(self._known) == len(self._cells):
            return None
        for _ in range(MOST_ASKED):
            trial_id = next(self._ids)
            with _quiet():
                config = self._search.suggest(trial_id)
            if config is None:
                continue
            cell = self._cell(config)
            if cell not in self._cells:  # its fallback point is held to no constraint
                self._search.on_trial_complete(trial_id, error=True)
                continue
            self._asked = trial_id, config
            if cell not in self._known:
                return cell
            self._complete(self._known[cell])
        return None

    def tell(self, trial: PeerTrial) -> None:
        """See Peer."""
        self._known[trial.allocation] = trial
        self._complete(trial)

    def _complete(self, trial: PeerTrial) -> None:
        if self._asked is None:
            return
        trial_id, config = self._asked
        seconds = trial.seconds
        if not trial.is_reached and trial.reports:
            seconds += trial.reports[-1].training_seconds
        short = trial.shortfall if math.isfinite(trial.shortfall) else abs(self.goal.target)
        result = {"cost": trial.cost, "shortfall": short, "seconds": seconds, "config": config}
        with _quiet():
            self._search.on_trial_complete(trial_id, result)
        self._asked = None

    def _middle(self, workers: int) -> Config:
        """Returns the middle batch of a worker count."""
        cells = [cell for cell in self.space.cells if cell.workers == workers]
        batch = self.space.user_batch(cells[len(cells) // 2])
        return {
            "workers": self.space.workers.index(workers),
            "batch": self.space.batches.index(batch),
        }

    def _cell(self, config: Config) -> Allocation:
        workers = self.space.workers[config["workers"]]
        return self.space.allocation(workers, self.space.batches[config["batch"]])

    def _is_hole(self, config: Config) -> float:
        return float(self._cell(config) not in self._cells)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna's line about each study and Ray's about declined proposals off the log."""
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

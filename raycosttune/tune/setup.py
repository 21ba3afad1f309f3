"""Everything a search is told before its first trial, checked, made into a session."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ray.tune.search.sample import Categorical

from raycosttune.core.abilities import Abilities
from raycosttune.core.choice import profile_recipe
from raycosttune.core.cost import CostMetric
from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.node_type import NodeType
from raycosttune.core.profile import Profile
from raycosttune.core.proposer import Proposer
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.value import read_real
from raycosttune.core.wish import Wish
from raycosttune.errors import InvalidGoalError, InvalidSpaceError
from raycosttune.proposal.optuna import OptunaProposer, SamplerFactory
from raycosttune.results.past_sweep import PastSweep
from raycosttune.tune.affects import check_affects_time
from raycosttune.tune.capacity import cluster_nodes, wait_for_workers
from raycosttune.tune.convert import Config, ParamSpace, merged
from raycosttune.tune.distribution import Distribution, read_distributions
from raycosttune.tune.fitted import Kind, fitted, warn_of_size
from raycosttune.tune.plan import config_of
from raycosttune.tune.points import check_cells, read_points
from raycosttune.tune.profile import profile_config
from raycosttune.tune.resources import ByType
from raycosttune.tune.sweep import Sweep

WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Holds a search's arguments that shape its session; see CostAwareSearch.

    Attributes:
        awaited: Workers that a restored sweep had, 0 of a new one: for their nodes it waits a
            while, as after a restart of the cluster they come one by one.
    """

    cost: CostMetric | None = None
    batch: Literal["global", "local"] = "global"
    workers_per_node: int | None = None
    divisible: bool = True
    min_local_batch: int = 1
    max_local_batch: int | None = None
    affects_time: Sequence[str] = ()
    learning_rate: LearningRate | None = None
    sampler: SamplerFactory | None = None
    max_concurrent: int | None = None
    seed: int = 0
    profile: bool = False
    resize: bool = True
    points: Sequence[Mapping[str, Any]] = ()
    known: PastSweep | None = None
    resources_per_worker: Mapping[str, float] = field(default_factory=lambda: {"CPU": 1.0})
    resources_by_type: ByType = field(default_factory=dict)
    awaited: int = 0

    def session(self, goal: Goal, params: ParamSpace) -> Session:
        """Makes a session over what the cluster can hold.

        Raises:
            InvalidSpaceError: If a grid is unusable, no cell is left, the learning rate is no
                domain of numbers, what affects time has no few values, or a point lies outside
                the space or is no legal cell.
            InvalidGoalError: If metric or mode is missing, or another than an earlier sweep's.
            InvalidCostError: If the cost metric breaks a law of costs.
        """
        wishes = self.check(params)
        space = self._fitted(self._space(params), params)
        check_cells(wishes, space)
        warn_of_size(space)
        return Session(
            space,
            goal,
            cost=self.cost,
            proposer=self._proposer(read_distributions(params.domains)),
            learning_rate=self.learning_rate,
            max_concurrent=self.max_concurrent,
            abilities=Abilities(profile=self.profile, resize=self.resize),
            wishes=wishes,
            prior=None if self.known is None else self.known.prior(goal),
            clock=time.monotonic,
        )

    def check(self, params: ParamSpace) -> tuple[Wish, ...]:
        """Checks what needs no cluster, and returns what the user wants evaluated first.

        Raises:
            InvalidSpaceError: As `session` does.
        """
        distributions = read_distributions(params.domains)
        if self.learning_rate is not None:
            _check_rate(self.learning_rate.key, params)
        check_affects_time(self.affects_time, params, distributions, self.learning_rate)
        wishes = read_points(self.points, params, distributions)
        check_cells(wishes, self._space(params))
        return wishes

    def config(self, sweep: Sweep, answer: Run | Profile, *, has_constants: bool) -> Config:
        """Returns the config of a run or a profile, with the constants where the search holds them.

        Raises:
            RayCostTuneError: If the sampler fails before the first run.
        """
        if isinstance(answer, Run):
            return config_of(sweep, answer, has_constants=has_constants)
        session, params = sweep.session, sweep.params
        recipe = answer.recipe
        if recipe is None:
            proposer = self._proposer(read_distributions(params.domains))
            recipe = profile_recipe(session.known, answer, proposer)
        searched = profile_config(params, session.space, answer, recipe, self.learning_rate)
        return merged(params.constants, searched) if has_constants else searched

    def _space(self, params: ParamSpace) -> Space:
        return Space(
            params.workers,
            params.batches,
            batch=self.batch,
            workers_per_node=self.workers_per_node,
            divisible=self.divisible,
            min_local_batch=self.min_local_batch,
            max_local_batch=self.max_local_batch,
            affects_time=tuple(self.affects_time),
            node_types=tuple(map(NodeType, params.types)),
        )

    def _fitted(self, space: Space, params: ParamSpace) -> Space:
        """Returns the space as far as the cluster can hold it."""
        kinds = tuple(Kind(name, self.needs_of(name)) for name in params.types)
        if kinds and not self.resources_by_type:
            return space  # the trainable will tell what a type needs
        kinds = kinds or (Kind("", self.resources_per_worker),)
        if self.awaited:
            wait_for_workers([kind.needs for kind in kinds], self.awaited, WAIT_SECONDS)
        nodes = cluster_nodes()
        if nodes is None:
            return space
        return fitted(space, nodes, kinds, self.workers_per_node, is_restored=bool(self.awaited))

    def needs_of(self, node_type: str) -> dict[str, float]:
        """Returns what a worker needs on a type of machine."""
        return {**self.resources_per_worker, **self.resources_by_type.get(node_type, {})}

    def _proposer(self, distributions: Mapping[str, Distribution]) -> Proposer | None:
        if not distributions:
            return None
        return OptunaProposer(distributions, self.sampler, self.seed)


def _check_rate(key: str, params: ParamSpace) -> None:
    domain = params.domains.get(key)
    categories = domain.categories if isinstance(domain, Categorical) else ()
    texts = [value for value in categories if read_real(value) is None]
    if domain is None or texts:
        got = f"a choice with {texts[0]!r}" if texts else "a constant, a grid or nothing"
        msg = (
            f"LearningRate.key must name a domain of numbers in the search space, got {key!r}, "
            f"{got}; the domains are {sorted(params.domains)}. Write tune.loguniform(1e-3, 1e-1), "
            "or tune.choice([0.1]) for a fixed rate."
        )
        raise InvalidSpaceError(msg)


def with_resources(
    setup: Setup, resources_per_worker: Mapping[str, float], resources_by_type: ByType
) -> Setup:
    """Returns a setup for workers that need something else."""
    needs, by_type = dict(resources_per_worker), dict(resources_by_type)
    return replace(setup, resources_per_worker=needs, resources_by_type=by_type)


def waiting_for(setup: Setup, workers: int) -> Setup:
    """Returns the setup of a restored sweep that had so many workers."""
    return replace(setup, awaited=max(workers, 1))


def allow_missing_metrics() -> None:
    """Lets a trial that misses the metric go on; Tune would end the whole sweep."""
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")


def goal_with(goal: Goal, metric: str | None, mode: str | None) -> Goal:
    """Returns the goal with Tune's metric and mode filled in.

    Raises:
        InvalidGoalError: If the goal and Tune name different ones.
    """
    for name, ours, theirs in (("metric", goal.metric, metric), ("mode", goal.mode, mode)):
        if ours is not None and theirs is not None and ours != theirs:
            msg = (
                f"{name} must be the same in Goal.{name} and in tune.run or TuneConfig, got "
                f"{ours!r} and {theirs!r}. Give it in one place."
            )
            raise InvalidGoalError(msg)
    known_mode: Any = goal.mode or mode  # Goal refuses what is no mode
    return replace(goal, metric=goal.metric or metric, mode=known_mode)


def check_named(goal: Goal) -> None:
    """Refuses a goal without a metric or mode.

    Raises:
        InvalidGoalError: If one is missing.
    """
    for name in ("metric", "mode"):
        if getattr(goal, name) is None:
            msg = (
                f"{name} must be given, got none in Goal.{name} nor in tune.run or TuneConfig. "
                'Write Goal(metric="accuracy", mode="max", ...).'
            )
            raise InvalidGoalError(msg)

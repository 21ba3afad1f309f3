"""The searcher that Ray Tune asks for trials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ray.tune.search import Searcher

from raycosttune.core.cost import CostMetric
from raycosttune.core.decision import Finished, Run
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.profile import Profile
from raycosttune.errors import RayCostTuneError
from raycosttune.proposal.optuna import SamplerFactory
from raycosttune.results.past_sweep import PastSweep
from raycosttune.tune.admission import Admission
from raycosttune.tune.argument import check_arguments
from raycosttune.tune.convert import check_same_search, read_param_space
from raycosttune.tune.fitted import recount
from raycosttune.tune.past import Past
from raycosttune.tune.resources import (
    TYPE_KEY,
    WORKERS_KEY,
    ByType,
    DriverResources,
    WorkerResources,
    check_types,
    check_workers_key,
    read_by_type,
    read_resources,
    type_in,
)
from raycosttune.tune.saved import Saved, first_readable, saved_states, write_saved
from raycosttune.tune.setup import (
    Setup,
    allow_missing_metrics,
    check_named,
    goal_with,
    waiting_for,
    with_resources,
)
from raycosttune.tune.sweep import Sweep
from raycosttune.tune.teller import Teller


class CostAwareSearch(Teller, Searcher):
    """Searches workers, batch and hyperparameters for the cheapest run to a target.

    Use it as `search_alg` of `tune.run` or `tune.TuneConfig`, together with
    `CostAwareScheduler`. It holds trials back until the cluster has free workers, and ends
    the sweep by itself when no further trial pays, so that `num_samples=-1` is the normal
    way to run it.

    Args:
        goal: Target and limits. Metric and mode may be left to Tune's own arguments.
        cost: What a run costs; node-hours by default.
        workers_key: Key of the worker count in the search space, nested with "/".
        batch_key: Key of the batch in the search space, nested with "/".
        node_type_key: Key of the type of machine in the search space, nested with "/". Where it
            holds a choice of texts there, the type is chosen with workers and batch; what is
            not there is not searched.
        batch: Whether the batch is the sum over workers ("global") or each worker's own.
        workers_per_node: Workers that fill one machine; read from the cluster by default.
        divisible: Whether a batch must split evenly over the workers.
        min_local_batch: Smallest share of a worker.
        max_local_batch: Largest share of a worker.
        resources_per_worker: What each worker needs beside or instead of one CPU; the
            trainables of this package bring their own.
        resources_by_type: What a worker needs beside that on each type of machine, likewise.
        affects_time: Keys of other hyperparameters in the search space that change how long an
            epoch takes, as precision or width do, nested with "/"; each a choice of few values.
        learning_rate: How the learning rate follows the batch.
        sampler: Makes an Optuna sampler from a seed; it must be picklable.
        max_concurrent: Most trials that run at once; by default one until the target is
            reached, then as many as fit and pay beside each other.
        space: The search space, where it isn't given to Tune.
        seed: Seed of the sampler.
        profile: Whether to time steps in several cells at one start of workers where that
            pays; only with `torch_trainable`. Each such start is one of Tune's trials.
        resize: Whether a run may go on from its checkpoint with other workers.
        points_to_evaluate: Configs to run before the search chooses its own, as the space
            nests them, whole or in part; the search fills in what one leaves open.
        known: An earlier sweep of the same model, by raycosttune.read_sweep: what it measured
            counts here and is paid for no more.

    Raises:
        InvalidGoalError, InvalidCostError, InvalidSpaceError: If an argument breaks its rule.
    """

    def __init__(  # noqa: PLR0913 - an argument for each rule of the space
        self,
        goal: Goal,
        *,
        cost: CostMetric | None = None,
        workers_key: str = WORKERS_KEY,
        batch_key: str = "batch_size",
        node_type_key: str = TYPE_KEY,
        batch: Literal["global", "local"] = "global",
        workers_per_node: int | None = None,
        divisible: bool = True,
        min_local_batch: int = 1,
        max_local_batch: int | None = None,
        resources_per_worker: Mapping[str, float] | None = None,
        resources_by_type: ByType | None = None,
        affects_time: Sequence[str] = (),
        learning_rate: LearningRate | None = None,
        sampler: SamplerFactory | None = None,
        max_concurrent: int | None = None,
        space: Mapping[str, Any] | None = None,
        seed: int = 0,
        profile: bool = False,
        resize: bool = True,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        known: PastSweep | None = None,
    ) -> None:
        super().__init__()
        by_type = read_by_type(resources_by_type)
        self._setup = Setup(
            cost=cost,
            batch=batch,
            workers_per_node=workers_per_node,
            divisible=divisible,
            min_local_batch=min_local_batch,
            max_local_batch=max_local_batch,
            resources_per_worker=read_resources(resources_per_worker, by_type=by_type),
            resources_by_type=by_type,
            affects_time=affects_time,
            learning_rate=learning_rate,
            sampler=sampler,
            max_concurrent=max_concurrent,
            seed=seed,
            profile=profile,
            resize=resize,
            points=() if points_to_evaluate is None else points_to_evaluate,
            known=known,
        )
        keys = {"workers_key": workers_key, "batch_key": batch_key, "node_type_key": node_type_key}
        check_arguments(goal, self._setup, space=space, **keys)
        self.goal = goal
        self._metric, self._mode = goal.metric, goal.mode
        self._keys = (workers_key, batch_key, node_type_key)
        self._owns_space = space is not None
        self._params = None if space is None else read_param_space(space, *self._keys)
        self._sweep: Sweep | None = None
        self._admission = Admission()
        self._saved: Saved | None = None
        self.past: Past | None = None
        self._is_restored = False
        if self._params is not None:
            self._setup.check(self._params)
        allow_missing_metrics()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Comes back from a pickle, perhaps in another process."""
        self.__dict__.update(state)
        allow_missing_metrics()

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: object
    ) -> bool:
        """See ray.tune.search.Searcher.set_search_properties.

        Raises:
            InvalidSpaceError: If the space can't be searched, or differs from one given
                before.
            InvalidGoalError: If metric or mode is missing, or given twice and different.
        """
        del spec
        try:
            self._take(metric, mode, config)
        except RayCostTuneError as error:
            self._failure = str(error)
            raise
        self._failure = ""
        self.sweep.is_idle = not self._is_restored
        return not self._owns_space

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Takes Tune's limit over. See ray.tune.search.Searcher.set_max_concurrency."""
        self._admission.limit(max_concurrent)
        return True

    def suggest(self, trial_id: str) -> Any:  # noqa: ANN401 - a dict, "FINISHED" or None
        """See ray.tune.search.Searcher.suggest.

        Raises:
            InvalidSpaceError: If no search space has arrived, or no cell is legal.
        """
        if (lost := self.sweep.lost_trial()) is not None:
            return self._start(trial_id, lost)
        match self._admission.ask(self.session, trial_id, self._setup.needs_of):
            case Run() | Profile():
                return self._start(trial_id, trial_id)
            case Finished() as end:
                self.sweep.say_end(end)
                return str(Searcher.FINISHED)
        return None

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """See ray.tune.search.Searcher.on_trial_result."""
        self.sweep.observe(trial_id, result)

    def on_trial_complete(
        self,
        trial_id: str,
        result: Mapping[str, Any] | None = None,
        error: bool = False,  # noqa: FBT001, FBT002 - Tune's signature
    ) -> None:
        """See ray.tune.search.Searcher.on_trial_complete."""
        if result:
            self.sweep.observe(trial_id, result)
        self.sweep.end(trial_id, is_error=error, has_run=result is not None)

    def save(self, checkpoint_path: str) -> None:
        """Writes the state as JSON; never raises. See ray.tune.search.Searcher.save."""
        write_saved(Path(checkpoint_path), self.goal, self._params, self._sweep)

    def restore(self, checkpoint_path: str) -> None:
        """Goes on from a saved state; never raises.

        What can't be read is kept aside, and rebuilt from the journal and Tune's own trials.
        """
        self._go_on([Path(checkpoint_path)])

    def restore_from_dir(self, checkpoint_dir: str) -> None:
        """Goes on from the newest state in a folder that can be read; never raises."""
        self._go_on(saved_states(Path(checkpoint_dir)))

    def _go_on(self, paths: Sequence[Path]) -> None:
        self._is_restored, self._sweep, self._setup = True, None, waiting_for(self._setup, 1)
        if (found := first_readable(paths, self.goal)) is not None:
            self._saved, self.goal = found
            self._metric, self._mode = self.goal.metric, self.goal.mode
            self._params = self._params or self._saved.params
            self._setup = waiting_for(self._setup, self._saved.workers)

    def adopt_space(self, metric: str | None, mode: str | None, config: Mapping[str, Any]) -> None:
        """Takes Tune's search space where a damaged file has lost it."""
        if self._params is None:
            self.set_search_properties(metric, mode, config)

    def adopt_resources(
        self, factory: DriverResources | WorkerResources, config: Mapping[str, Any]
    ) -> None:
        """Takes over what the trainable's workers need, and ends trials that can't fit.

        Args:
            factory: What the trainable asks Tune for.
            config: The config of a trial, which may hold the one type of machine of all.
        """
        check_workers_key(factory.workers_key, self._keys[0])
        needs, by_type = factory.resources_per_worker, factory.resources_by_type
        keys = factory.node_type_key, self._keys[2]
        check_types(self.params.types, by_type, keys)
        if by_type and not self.params.types:
            fixed = type_in(config, factory.node_type_key, by_type)
            needs, by_type = {**needs, **by_type[fixed]}, {}
        if (needs, by_type) == (self._setup.resources_per_worker, self._setup.resources_by_type):
            return
        self._setup = with_resources(self._setup, needs, by_type)
        self._admission = self._admission.renewed()
        self.sweep.move_to(self._setup.session(self.goal, self.params))
        recount(self.sweep.session)

    def check_placement(self) -> None:
        """Refuses types of machine with a trainable that doesn't place workers by itself.

        Raises:
            InvalidTrainableError: If the search doesn't know what a type needs.
        """
        key = self._keys[2]
        check_types(self.params.types, self._setup.resources_by_type, (key, key))

    def _take(self, metric: str | None, mode: str | None, config: Mapping[str, Any]) -> None:
        goal = goal_with(self.goal, metric, mode)
        check_named(goal)
        if not self._owns_space:
            params = read_param_space(config, *self._keys)
            if self._sweep is not None:
                check_same_search(params, self.params)
            self._params = params
        self.goal = goal
        self._metric, self._mode = goal.metric, goal.mode

    def _start(self, trial_id: str, record_id: str) -> dict[str, Any]:
        answer = self.session.ask(record_id)
        assert isinstance(answer, (Run, Profile))  # noqa: S101 - the session knows the trial
        config = self._setup.config(self.sweep, answer, has_constants=self._owns_space)
        self.sweep.start(trial_id, record_id)
        return config

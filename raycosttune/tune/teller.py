"""What a search tells its user: plan, estimate and explanation, before, during and after."""

from typing import Self

import ray.tune

from raycosttune.core.estimate import Estimate
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import Free
from raycosttune.core.pareto import Tradeoff
from raycosttune.core.plan import NoPlan
from raycosttune.core.prediction import Prediction
from raycosttune.core.session import Session
from raycosttune.tune.admission import Admission
from raycosttune.tune.convert import ParamSpace, missing_space
from raycosttune.tune.past import Past, not_begun, past_of
from raycosttune.tune.plan import TunePlan, plan_of
from raycosttune.tune.saved import Saved
from raycosttune.tune.setup import Setup, check_named
from raycosttune.tune.sweep import Sweep
from raycosttune.tune.wrapper import search_in


class Teller:
    """Begins the sweep when first read, and tells of it, or of the one that is to go on.

    Attributes:
        goal: Target and limits.
        past: The run that was broken off, None where there is none.
    """

    goal: Goal
    past: Past | None
    _admission: Admission
    _setup: Setup
    _keys: tuple[str, str, str]
    _is_restored: bool
    _params: ParamSpace | None
    _owns_space: bool
    _sweep: Sweep | None
    _saved: Saved | None
    _failure: str = ""  # why Tune's run could not begin

    @property
    def params(self) -> ParamSpace:
        """The search space.

        Raises:
            InvalidSpaceError: If none has arrived yet.
        """
        if self._params is None:
            raise missing_space(*self._keys)
        return self._params

    @property
    def sweep(self) -> Sweep:
        """The sweep under way, begun when first read.

        Raises:
            InvalidSpaceError: If no search space has arrived yet, or no cell is legal.
            InvalidGoalError: If metric or mode is missing.
            InvalidCostError: If the cost metric breaks a law of costs.
        """
        if self._sweep is None:
            params = self.params
            check_named(self.goal)
            session = self._setup.session(self.goal, params)
            self._sweep = Sweep(session, params, is_restored=self._is_restored)
            if self._saved is not None:
                self._saved.load_into(self._sweep)
        return self._sweep

    @property
    def session(self) -> Session:
        """The state of the sweep, made when first read; raises what `sweep` does."""
        return self.sweep.session

    @property
    def free_workers(self) -> Free:
        """Workers that the cluster can hold beside what runs, None where Ray isn't running."""
        return self._admission.free_workers(self.session, self._setup.needs_of)

    def plan(self) -> TunePlan | NoPlan:
        """Returns the best configuration so far, ready to be run; see Session.plan."""
        sweep, has_constants = self._seen("plan"), self._owns_space
        return plan_of(sweep, has_constants=has_constants)

    def estimate(self) -> Estimate:
        """Returns what the sweep costs: spent, likely to come, and at most; see Estimate."""
        return self._seen("estimate").session.estimate()

    def explain(self) -> str:
        """Says what was tried and why the search goes on or ended."""
        return self._seen("explain").session.explain()

    def pareto(self) -> tuple[Tradeoff, ...]:
        """Returns what no other choice beats in cost, time and metric at once, fastest first."""
        return self._seen("pareto").session.pareto()

    def metric_at(self, batch_size: int, epochs: float) -> Prediction | None:
        """Predicts the best value that a run reports within some epochs; see Moment.metric_at."""
        return self._seen("metric_at").session.metric_at(batch_size, epochs)

    @classmethod
    def of(cls, tuner: ray.tune.Tuner) -> Self:
        """Returns the search inside a tuner; that of a restored one knows the run so far.

        Raises:
            InvalidStateError: If the tuner holds no search of this kind.
        """
        search = search_in(tuner, cls)
        search.past = past_of(tuner)
        return search

    def _seen(self, what: str) -> Sweep:
        """Returns the sweep to tell of: the one under way, or the one that is to go on.

        Raises:
            InvalidStateError: If nothing has run and nothing is saved, or the start failed.
        """
        sweep = self._sweep
        is_new = sweep is None or (self._failure != "" and not sweep.session.records)
        if is_new and self._saved is None:
            seen = self.past and self.past.sweep(self.goal, self._setup, self._params)
            if isinstance(seen, Sweep):
                return seen
            if error := not_begun(what, self.goal, self._params, self._failure):
                raise error
        return self.sweep

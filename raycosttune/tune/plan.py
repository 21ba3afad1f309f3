"""A plan in the shape of the user's own config."""

import math
from dataclasses import dataclass, field, fields, replace

from raycosttune.core.decision import Run
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.errors import InvalidCostError
from raycosttune.tune.convert import Config, merged
from raycosttune.tune.sweep import Sweep


@dataclass(frozen=True)
class TunePlan(Plan):
    """Is a plan with the config that starts it.

    Attributes:
        config: The whole config, nested as the user wrote it: the trainable runs on it as
            it is.
    """

    config: Config = field(default_factory=dict)


def plan_of(sweep: Sweep, *, has_constants: bool, samples: float = math.inf) -> TunePlan | NoPlan:
    """Returns the plan of a sweep together with the config that starts it.

    Args:
        sweep: The sweep.
        has_constants: Whether the search, not Tune, holds the space's constants.
        samples: Tune's `num_samples`.
    """
    plan = sweep.session.plan()
    early = used_up(sweep, samples)
    if isinstance(plan, NoPlan):
        return replace(plan, reason=f"{plan.reason}; ended early: {early}") if early else plan
    plan = replace(plan, limit=plan.limit or early)
    base = sweep.configs.get(plan.trial_id, sweep.params.constants)
    run = Run(plan.allocation, plan.recipe, "it is planned")
    searched = config_of(sweep, run, has_constants=has_constants)
    known = {item.name: getattr(plan, item.name) for item in fields(plan)}
    return TunePlan(**known, config=merged(base, searched))


def used_up(sweep: Sweep, samples: float) -> str:
    """Says that Tune's `num_samples` has ended a sweep whose search would go on, or nothing."""
    session = sweep.session
    started = len(session.records) + len(session.profiles)
    if started < samples or session.live or session.live_profiles:
        return ""
    try:
        is_over = isinstance(session.ahead, str)
    except InvalidCostError:
        return ""  # the plan says so
    text = f"num_samples={samples:g} allowed no further trial; with -1 the search ends by itself"
    return "" if is_over else text


def config_of(sweep: Sweep, run: Run, *, has_constants: bool) -> Config:
    """Returns the config of a run, with the constants where the search holds them."""
    params, cell = sweep.params, run.allocation
    batch = sweep.session.space.user_batch(cell)
    searched = params.config(cell.workers, batch, run.recipe, cell.node_type)
    return merged(params.constants, searched) if has_constants else searched

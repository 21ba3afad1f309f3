"""A plan in the shape of the user's own config."""

from dataclasses import dataclass, field, fields

from raycosttune.core.decision import Run
from raycosttune.core.plan import NoPlan, Plan
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


def plan_of(sweep: Sweep, *, has_constants: bool) -> TunePlan | NoPlan:
    """Returns the plan of a sweep together with the config that starts it.

    Args:
        sweep: The sweep.
        has_constants: Whether the search, not Tune, holds the space's constants.
    """
    plan = sweep.session.plan()
    if isinstance(plan, NoPlan):
        return plan
    base = sweep.configs.get(plan.trial_id, sweep.params.constants)
    run = Run(plan.allocation, plan.recipe, "it is planned")
    searched = config_of(sweep, run, has_constants=has_constants)
    known = {item.name: getattr(plan, item.name) for item in fields(plan)}
    return TunePlan(**known, config=merged(base, searched))


def config_of(sweep: Sweep, run: Run, *, has_constants: bool) -> Config:
    """Returns the config of a run, with the constants where the search holds them."""
    params, cell = sweep.params, run.allocation
    batch = sweep.session.space.user_batch(cell)
    searched = params.config(cell.workers, batch, run.recipe, cell.node_type)
    return merged(params.constants, searched) if has_constants else searched

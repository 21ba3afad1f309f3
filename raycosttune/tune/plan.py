"""A plan in the shape of the user's own config."""

from dataclasses import dataclass, field, fields

from raycosttune.core.plan import Plan
from raycosttune.tune.convert import Config


@dataclass(frozen=True)
class TunePlan(Plan):
    """Is a plan with the config that starts it.

    Attributes:
        config: The whole config, nested as the user wrote it: the trainable runs on it as
            it is.
    """

    config: Config = field(default_factory=dict)


def with_config(plan: Plan, config: Config) -> TunePlan:
    """Returns the plan together with the config that starts it."""
    return TunePlan(**{item.name: getattr(plan, item.name) for item in fields(plan)}, config=config)

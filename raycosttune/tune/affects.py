"""Which hyperparameters change how long an epoch takes, checked before the first trial."""

import math
from collections.abc import Collection, Mapping

from optuna.distributions import CategoricalDistribution, IntDistribution

from raycosttune.core.learning_rate import LearningRate
from raycosttune.errors import InvalidSpaceError
from raycosttune.tune.convert import ParamSpace
from raycosttune.tune.distribution import Distribution

MOST_CLASSES = 8  # each needs timings of its own


def check_affects_time(
    names: Collection[str],
    params: ParamSpace,
    distributions: Mapping[str, Distribution],
    rate: LearningRate | None,
) -> None:
    """Refuses names under which epoch times can't be kept apart.

    Args:
        names: Names of hyperparameters, joined with "/".
        params: The search space.
        distributions: What is sampled of it, by name.
        rate: How the learning rate follows the batch, if it does.

    Raises:
        InvalidSpaceError: If a name is that of workers, batch, type of machine or the learning
            rate, is no domain of the search space or one without few values, or if all together
            have too many combinations.
    """
    chosen = {params.workers_key: "workers", params.batch_key: "batch"}
    if params.types:
        chosen[params.type_key] = "type of machine"
    for name in names:
        if name in chosen:
            cure = "Leave it out: epochs are timed by workers, batch and type of machine anyway."
            raise _refused(name, f"the key of the {chosen[name]}", cure)
        if rate is not None and name == rate.key:
            raise _refused(name, "the learning rate, which changes no time", "Leave it out.")
        if name not in distributions:
            cure = f"The domains of the search space are {sorted(distributions)}."
            raise _refused(name, "none of them", cure)
    counts = {name: _count(distributions[name]) for name in names}
    if math.prod(counts.values()) > MOST_CLASSES:
        told = ", ".join(f'"{name}" with {_told(count)}' for name, count in counts.items())
        msg = (
            f"affects_time must have at most {MOST_CLASSES} combinations of values, got {told}. "
            "Offer fewer values by tune.choice([...]), or name only what changes time most."
        )
        raise InvalidSpaceError(msg)


def _count(distribution: Distribution) -> float:
    """Returns how many values there are, infinite in a range of real numbers."""
    match distribution:
        case CategoricalDistribution():
            return len(distribution.choices)
        case IntDistribution():
            return (distribution.high - distribution.low) // distribution.step + 1
        case _:
            return math.inf


def _told(count: float) -> str:
    return "any number of values" if math.isinf(count) else f"{count:.0f} values"


def _refused(name: str, got: str, cure: str) -> InvalidSpaceError:
    msg = f'affects_time must name domains of other hyperparameters, got "{name}", {got}. {cure}'
    return InvalidSpaceError(msg)

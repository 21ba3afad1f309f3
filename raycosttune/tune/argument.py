"""The arguments of a search, checked before anything is paid for."""

from collections.abc import Callable, Mapping
from typing import Any

from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.value import read_count, read_name, read_whole
from raycosttune.errors import InvalidGoalError, InvalidSpaceError
from raycosttune.results.past_sweep import PastSweep
from raycosttune.tune.setup import Setup

Rule = tuple[Callable[[Any], bool], str, str]
NAMES = {"points": "points_to_evaluate"}  # where a user's name is another one
MOST = 300  # characters of a wrong value that are shown
MOST_VERBOSE = 3  # as Tune has it


def _is_count(value: object) -> bool:
    return read_count(value) is not None


def _is_limit(value: object) -> bool:
    return value is None or _is_count(value)


COUNT = "be a whole number of at least 1 and at most 10**12"
LIMIT: Rule = (_is_limit, COUNT, "Leave it out for no limit.")
KEY: Rule = (
    lambda value: bool(read_name(value)),
    "be a text that isn't empty",
    'Nest keys with "/".',
)
RULES: dict[str, Rule] = {
    "batch": (lambda value: value in ("global", "local"), 'be "global" or "local"', "Name one."),
    "workers_per_node": (_is_limit, COUNT, "Leave it out: the cluster says it."),
    "divisible": (lambda value: isinstance(value, bool), "be True or False", "Write one."),
    "profile": (lambda value: isinstance(value, bool), "be True or False", "Write one."),
    "resize": (lambda value: isinstance(value, bool), "be True or False", "Write one."),
    "min_local_batch": (_is_count, COUNT, "Leave it out for 1."),
    "max_local_batch": LIMIT,
    "affects_time": (
        lambda value: (
            isinstance(value, list | tuple)
            and all(map(read_name, value))
            and len(set(value)) == len(value)
        ),
        "be a tuple of different texts",
        'Write affects_time=("precision",).',
    ),
    "learning_rate": (
        lambda value: value is None or isinstance(value, LearningRate),
        "be a LearningRate",
        "Write LearningRate(reference_batch=64).",
    ),
    "sampler": (
        lambda value: value is None or callable(value),
        "be a function from a seed to an Optuna sampler",
        "Write lambda seed: TPESampler(seed=seed).",
    ),
    "known": (
        lambda value: value is None or isinstance(value, PastSweep),
        "be an earlier sweep",
        "Write raycosttune.read_sweep(path); that of raycosttune.report is for figures.",
    ),
    "max_concurrent": LIMIT,
    "seed": (
        lambda value: read_whole(value) is not None,
        "be a whole number of at least 0",
        "Leave it out for 0.",
    ),
    "points": (
        lambda value: (
            isinstance(value, list | tuple) and all(isinstance(point, Mapping) for point in value)
        ),
        "be a list of dicts",
        "Write points_to_evaluate=[{...}].",
    ),
    "space": (
        lambda value: value is None or isinstance(value, Mapping),
        "be a dict as Tune's param_space",
        "Leave it out where Tune is given it.",
    ),
    "workers_key": KEY,
    "batch_key": KEY,
    "node_type_key": KEY,
}


def check_arguments(goal: object, setup: Setup, **others: object) -> None:
    """Refuses what is of the wrong kind; whether it goes together is seen with the space.

    Args:
        goal: The goal.
        setup: What shapes the session.
        others: The search's other arguments, by their names.

    Raises:
        InvalidGoalError: If the goal is no Goal.
        InvalidCostError: If the cost is no metric.
        InvalidSpaceError: At any other argument.
    """
    if not isinstance(goal, Goal):
        msg = f"goal must be a Goal, got {goal!r}. Write Goal(target=0.9, ...)."
        raise InvalidGoalError(msg)
    if setup.cost is not None:
        check_cost_metric(setup.cost, ())
    values = {**vars(setup), **others}
    for name, (is_right, rule, cure) in RULES.items():
        if not is_right(values[name]):
            msg = f"{NAMES.get(name, name)} must {rule}, got {_shown(values[name])}. {cure}"
            raise InvalidSpaceError(msg)


def check_search(search: object, is_search: type) -> None:
    """Refuses to show anything but a search, before a sweep is paid for.

    Raises:
        InvalidSpaceError: If it is none.
    """
    if not isinstance(search, is_search):
        msg = f"search must be the sweep's CostAwareSearch, got {_shown(search)}"
        raise InvalidSpaceError(msg)


def check_verbose(verbose: object) -> int:
    """Returns how much is to be shown.

    Raises:
        InvalidSpaceError: If it is no whole number from 0 to 3.
    """
    number = read_whole(verbose)
    if number is None or number > MOST_VERBOSE:
        msg = (
            f"verbose must be a whole number from 0, which shows nothing, to {MOST_VERBOSE}, "
            f"which shows each report, got {_shown(verbose)}"
        )
        raise InvalidSpaceError(msg)
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST else f"a {type(value).__name__}"

"""Training functions as users hand them over, checked when they are wrapped."""

import inspect

from raycosttune.core.value import read_name
from raycosttune.errors import InvalidTrainableError


def check_function(name: str, function: object, *, may_take_none: bool = False) -> None:
    """Refuses what can't be called with a config, before any worker is paid for.

    Args:
        name: The wrapper that was given the function.
        function: The function.
        may_take_none: Whether it may take no argument, as a loop of Ray Train's.

    Raises:
        InvalidTrainableError: If it is no function, or takes other arguments.
    """
    if hasattr(function, "fit") or not callable(function) or isinstance(function, type):
        msg = (
            f"{name} must be given the training function itself, got {type(function).__name__}. "
            "Pass the function that you would hand to TorchTrainer, not a trainer."
        )
        raise InvalidTrainableError(msg)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    if _takes(signature, {}) or (may_take_none and _takes(signature)):
        return
    called = getattr(function, "__name__", type(function).__name__)
    msg = (
        f"{name} must be given a function that takes one argument, the config, got "
        f"{called}{signature}. Write def {called}(config): and bind others by functools.partial."
    )
    raise InvalidTrainableError(msg)


def check_key(name: str, key: object) -> None:
    """Refuses a key that names nothing.

    Raises:
        InvalidTrainableError: If it is no text, or an empty one.
    """
    if read_name(key) is None:
        what = "worker count" if name == "workers_key" else "type of machine"
        msg = (
            f"{name} must be a text that isn't empty, got {key!r}. "
            f'Name the {what} of the config, nested with "/".'
        )
        raise InvalidTrainableError(msg)


def _takes(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True

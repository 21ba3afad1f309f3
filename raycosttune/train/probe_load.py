"""Loads the job to probe from a module of the user's."""

import inspect
import sys
from importlib import import_module
from pathlib import Path

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_child import place_of
from raycosttune.train.probe_given import job_of
from raycosttune.train.probe_job import Job


def load_job(target: str) -> Job:
    """Imports what makes a job, from the working directory too, and calls it.

    Args:
        target: `module:function`; the function takes no argument and returns what `job_of` takes.

    Raises:
        InvalidAdviceError: If there is no such function, it raises, or returns something else.
    """
    module, name = parts_of(target)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script has its own folder there
    try:
        job = job_of(_called(name, getattr(import_module(module), name)))
        _check_dataset(job.dataset)
    except InvalidAdviceError as error:
        msg = f"{target} makes no job: {error}"
        raise InvalidAdviceError(msg) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        msg = f"{target} must make a job, it raised {type(error).__name__}: {error}"
        msg += place_of(error)
        raise InvalidAdviceError(msg) from error
    return job


def parts_of(target: object) -> tuple[str, str]:
    """Splits `module:function`.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    module, _, name = target.partition(":") if isinstance(target, str) else ("", "", "")
    if not (module and name):
        msg = f"what makes the job must be module:function, got {target!r}"
        raise InvalidAdviceError(msg)
    return module, name


def _check_dataset(dataset: object) -> None:
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        kind = type(dataset).__name__
        msg = f"its dataset must have a length and samples by number, got {kind}. A list will do"
        raise InvalidAdviceError(msg)
    if len(dataset) < 1:
        msg = "its dataset must have at least 1 sample, got none"
        raise InvalidAdviceError(msg)


def _called(name: str, make: object) -> object:
    if not callable(make):
        msg = f"it must be a function, got {type(make).__name__}"
        raise InvalidAdviceError(msg)
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # some built-in types don't tell what they take
        return make()
    try:
        signature.bind()
    except TypeError as error:
        msg = f"it must take no argument, got {name}{signature}. Wrap it in one that has none"
        raise InvalidAdviceError(msg) from error
    return make()

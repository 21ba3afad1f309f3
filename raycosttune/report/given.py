"""The sweep that a figure is given: a view, or what the package's other `read_sweep` returns."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from raycosttune.errors import InvalidStateError
from raycosttune.report.read import read_sweep
from raycosttune.report.view import View
from raycosttune.results.past_sweep import PastSweep

More = ParamSpec("More")
Made = TypeVar("Made")


def of_sweep(
    make: Callable[Concatenate[View, More], Made],
) -> Callable[Concatenate[View | PastSweep, More], Made]:
    """Lets a function of a view take an earlier sweep, too, as `raycosttune.read_sweep` reads it.

    Args:
        make: What makes a figure, a page or a study.
    """

    @wraps(make)
    def made(sweep: View | PastSweep, /, *others: More.args, **named: More.kwargs) -> Made:
        return make(_view(make.__name__, sweep), *others, **named)

    return made


def _view(name: str, sweep: object) -> View:
    """Returns the view of a sweep.

    Raises:
        InvalidStateError: If it is none, or its journal can't be read any more.
        InvalidCostError: If the journal doesn't tell the metric of its cost.
    """
    if isinstance(sweep, View):
        return sweep
    if isinstance(sweep, PastSweep):
        return read_sweep(sweep.path)
    msg = (
        f"{name} must be given a sweep, got {type(sweep).__name__}. Write "
        f"{name}(raycosttune.report.read_sweep(folder)), or sweep_of(search.session)."
    )
    raise InvalidStateError(msg)

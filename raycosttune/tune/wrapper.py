"""What is inside Tune's wrappers of a searcher."""

from typing import TypeVar

from raycosttune.errors import InvalidStateError

Kind = TypeVar("Kind")


def searcher_of(tuner: object) -> object:
    """Returns what a tuner was given as search_alg, None where there is none."""
    local = getattr(tuner, "_local_tuner", None)
    return getattr(getattr(local, "_tune_config", None), "search_alg", None)


def search_in(tuner: object, kind: type[Kind]) -> Kind:
    """Returns the search of a kind inside a tuner.

    Raises:
        InvalidStateError: If it holds none.
    """
    held = searcher_of(tuner)
    search = unwrapped(held, kind)
    if search is None:
        msg = f"a tuner must hold a {kind.__name__}, got {type(held).__name__}"
        raise InvalidStateError(msg)
    return search


def unwrapped(searcher: object, kind: type[Kind]) -> Kind | None:
    """Returns the searcher of a kind inside wrappers such as a ConcurrencyLimiter.

    Args:
        searcher: A searcher, or what holds one as `searcher`.
        kind: What is looked for.

    Returns:
        The searcher, None where there is none of the kind.
    """
    while not isinstance(searcher, kind):
        if not hasattr(searcher, "searcher"):
            return None
        searcher = searcher.searcher
    return searcher

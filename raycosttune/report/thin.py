"""Fewer points, curves and rows where there are too many to look at."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from raycosttune.report.view import Trial

Item = TypeVar("Item")
QUANTILES = (0.1, 0.5, 0.9)


def every(items: Sequence[Item], most: int) -> list[Item]:
    """Returns at most so many items, evenly chosen; the first and the last are kept."""
    if len(items) <= most:
        return list(items)
    places = np.unique(np.linspace(0, len(items) - 1, most).round().astype(int))
    return [items[k] for k in places]


def chosen(items: Sequence[Item], most: int, rank: Callable[[Item], float]) -> list[Item]:
    """Returns the items of the highest rank in their own order."""
    if len(items) <= most:
        return list(items)
    best = sorted(range(len(items)), key=lambda k: -rank(items[k]))[:most]
    return [items[k] for k in sorted(best)]


def quantiles(trials: Sequence[Trial], most: int) -> tuple[list[float], list[list[float]]]:
    """Sums many learning curves up.

    Args:
        trials: The trials.
        most: Epochs at which to do so.

    Returns:
        The epochs, and at each of them the quantiles of the values reported there.
    """
    at: dict[float, list[float]] = {}
    for trial in trials:
        for epoch, value in zip(trial.epochs, trial.values, strict=True):
            if value is not None:
                at.setdefault(epoch, []).append(value)
    epochs = every(sorted(at), most)
    return epochs, [np.quantile(at[epoch], QUANTILES).tolist() for epoch in epochs]

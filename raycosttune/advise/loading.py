"""What loading adds to a step, and when it is hidden."""

import math

from raycosttune.advise.quantity import MOST_COUNT, amount, count, refuse


def exposed_loading_seconds(
    loading_seconds: float, compute_seconds: float, *, in_background: bool
) -> float:
    """Returns what loading a batch adds to a step.

    Args:
        loading_seconds: Between two batches where nothing else is done.
        compute_seconds: Of the rest of the step.
        in_background: Whether other processes load meanwhile: then it adds only what it takes
            beyond the rest.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017: the input pipeline is hidden where it keeps up with the compute.

    >>> exposed_loading_seconds(0.5, 0.4, in_background=False)
    0.5
    >>> round(exposed_loading_seconds(0.5, 0.4, in_background=True), 6)
    0.1
    """
    loading = amount("loading_seconds", loading_seconds)
    compute = amount("compute_seconds", compute_seconds)
    return max(0.0, loading - compute) if in_background else loading


def loaders_to_hide(loading_seconds: float, compute_seconds: float, loaders: int = 1) -> int | None:
    """Returns how many processes hide the loading, were each as fast as those measured.

    Args:
        loading_seconds: Between two batches where nothing else is done.
        compute_seconds: Of the rest of the step.
        loaders: Processes that loaded meanwhile; the worker's own counts as one.

    Returns:
        The number; None where the rest of the step takes no time to hide behind.

    Raises:
        InvalidAdviceError: If a number is unusable, or the loaders would exceed 10**12.

    >>> loaders_to_hide(0.5, 0.4, loaders=2)
    3
    """
    work = amount("loading_seconds", loading_seconds) * count("loaders", loaders)
    compute = amount("compute_seconds", compute_seconds)
    if work == 0:
        return 1
    if compute == 0:
        return None
    if work / compute > MOST_COUNT:
        refuse("compute_seconds", "be so long that 10**12 loaders hide behind it", compute_seconds)
    return max(1, math.ceil(work / compute))

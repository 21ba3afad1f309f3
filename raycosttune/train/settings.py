"""Whether and how the shares of this process's workers follow their speeds."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from raycosttune.core.rebalance import Balance, Equal, Policy
from raycosttune.core.value import read_count
from raycosttune.errors import InvalidRebalanceError

logger = logging.getLogger(__name__)
Shares = tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """Is what a callback installs in a worker's process before training begins.

    Attributes:
        policy: Turns what was measured into shares.
        every_steps: Steps between two adjustments within an epoch, None for its end only.
        caps: Largest shares of workers that ran out of memory, by name.
        requested_at: When the workers were asked for, seconds since 1970, None if unknown.
        paid_seconds: Seconds for which earlier starts of the run held workers.
    """

    policy: Policy = field(default_factory=Equal)
    every_steps: int | None = None
    caps: Mapping[str, int] = field(default_factory=dict)
    requested_at: float | None = None
    paid_seconds: float = 0.0


_installed = Settings()
_is_warned = False


def rebalance(
    policy: Policy | None = None, *, every_steps: int | None = None
) -> Callable[[], None]:
    """Lets shares follow the speeds of the workers where Ray Train does not run them.

    Call it on every worker before `prepare_data_loader`. On Ray Train, put a
    `RebalanceCallback` among the run's callbacks instead.

    Args:
        policy: Turns what was measured into shares; `Balance()` by default.
        every_steps: Steps between two adjustments within an epoch; at its end only by default.

    Returns:
        What brings back equal shares for loaders that are prepared afterwards.

    Raises:
        InvalidRebalanceError: If an argument is unusable.
    """
    checked = check_policy(Balance() if policy is None else policy, every_steps)
    return install(Settings(checked, every_steps))


def check_policy(policy: Policy, every_steps: int | None) -> Policy:
    """Returns the policy.

    Raises:
        InvalidRebalanceError: If it is none, or the steps are no count.
    """
    if not callable(getattr(policy, "plan", None)) or isinstance(policy, type):
        msg = (
            f"policy must have a method plan(workers, shares, total), got {policy!r}. "
            "Take Balance(), DBS() or Equal() of raycosttune.train, or write one."
        )
        raise InvalidRebalanceError(msg)
    if every_steps is not None and read_count(every_steps) is None:
        msg = (
            f"every_steps must be a whole number of at least 1, got {every_steps!r}. "
            "Leave it out to adjust at the end of each epoch."
        )
        raise InvalidRebalanceError(msg)
    return policy


def install(settings: Settings) -> Callable[[], None]:
    """Lets the loaders of this process follow the settings.

    Returns:
        What brings back the settings before.
    """
    global _installed
    before, _installed = _installed, settings

    def restore() -> None:
        global _installed  # noqa: PLW0603 - as above
        _installed = before

    return restore


def installed() -> Settings:
    """Returns the settings of this process: equal shares where none were installed."""
    return _installed


def heed_idle_policy() -> None:
    """Warns, once and on the first worker, that there is nothing whose shares could follow speeds.

    Call it where an epoch is over, or reported, and no prepared model has been trained.
    """
    global _is_warned  # noqa: PLW0603 - once for the process
    is_first = os.environ.get("RANK", "0") == "0"
    if is_first and not _is_warned and not isinstance(_installed.policy, Equal):
        _is_warned = True
        logger.warning(
            "shares can't follow the workers' speeds: no model of raycosttune.train.prepare_model "
            "was trained on batches of raycosttune.train.prepare_data_loader. Use both in the "
            "loop, in place of Ray Train's or PyTorch's own."
        )

"""Whether and how the shares of this process's workers follow their speeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from raycosttune.core.rebalance import Balance, Equal, Policy

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
    """
    return install(Settings(Balance() if policy is None else policy, every_steps))


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

"""Errors that raycosttune raises, all below one base class."""

from collections.abc import Sequence


class RayCostTuneError(Exception):
    """Is the base of every error that raycosttune raises on purpose."""


class InvalidSpaceError(RayCostTuneError, ValueError):
    """Says that the workers and batches to choose from are unusable."""


class InvalidGoalError(RayCostTuneError, ValueError):
    """Says that the target, a limit, the metric or the mode is unusable."""


class InvalidCostError(RayCostTuneError, ValueError):
    """Says that a cost metric has no unit or returned something that is no cost."""


class InvalidPriceSheetError(InvalidCostError):
    """Says everything that is wrong with a price sheet.

    Attributes:
        problems: What is wrong, one sentence each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))

    def __reduce__(self) -> tuple[type["InvalidPriceSheetError"], tuple[tuple[str, ...]]]:
        """Lets it pass between processes with its problems."""
        return type(self), (self.problems,)


class PowerUnknownError(RayCostTuneError, RuntimeError):
    """Says that nothing on this machine tells what it draws."""


class InvalidStateError(RayCostTuneError, ValueError):
    """Says that a saved state or a journal can't be read by this version."""


class InvalidTrainableError(RayCostTuneError, TypeError):
    """Says that what was passed to be trained is of the wrong kind."""


class NoPlanError(RayCostTuneError, RuntimeError):
    """Says that no run has reached the target yet, so there is no plan."""


class InvalidWorkloadError(RayCostTuneError, ValueError):
    """Says that recorded measurements can't be replayed, or not under this goal."""


class InvalidLoaderError(RayCostTuneError, ValueError):
    """Says that batches can't be shared among workers as asked."""


class InvalidModelError(RayCostTuneError, RuntimeError):
    """Says that a model's gradients can't be weighted as they must."""


class InvalidRebalanceError(RayCostTuneError, ValueError):
    """Says that workers can't be balanced as asked."""


class InvalidAdviceError(RayCostTuneError, ValueError):
    """Says that advice can't be given on such numbers, or that nothing meets a limit."""

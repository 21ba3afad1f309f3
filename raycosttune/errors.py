"""Errors that raycosttune raises, all below one base class."""


class RayCostTuneError(Exception):
    """Is the base of every error that raycosttune raises on purpose."""


class InvalidSpaceError(RayCostTuneError, ValueError):
    """Says that the workers and batches to choose from are unusable."""


class InvalidGoalError(RayCostTuneError, ValueError):
    """Says that the target, a limit, the metric or the mode is unusable."""


class InvalidCostError(RayCostTuneError, ValueError):
    """Says that a cost metric has no unit or returned something that is no cost."""


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

"""Ray Tune's side of raycosttune: the search, the scheduler and the trainables."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raycosttune.tune.progress import Progress
    from raycosttune.tune.scheduler import CostAwareScheduler
    from raycosttune.tune.search import CostAwareSearch
    from raycosttune.tune.suggest import suggest_space
    from raycosttune.tune.sweep_metrics import SweepMetrics
    from raycosttune.tune.trainable import function_trainable, torch_trainable
else:
    _HOMES = {
        "CostAwareScheduler": "scheduler",
        "CostAwareSearch": "search",
        "Progress": "progress",
        "SweepMetrics": "sweep_metrics",
        "function_trainable": "trainable",
        "suggest_space": "suggest",
        "torch_trainable": "trainable",
    }

    def __getattr__(name: str) -> object:
        """Imports what is asked for alone: a trial needs no search, and starts a second sooner."""
        if name in _HOMES:
            from importlib import import_module  # noqa: PLC0415 - as the docstring says

            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


__all__ = [
    "CostAwareScheduler",
    "CostAwareSearch",
    "Progress",
    "SweepMetrics",
    "function_trainable",
    "suggest_space",
    "torch_trainable",
]

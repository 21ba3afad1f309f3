"""Ray Tune's side of raycosttune: the search, the scheduler and the trainables."""

from raycosttune.tune.progress import Progress
from raycosttune.tune.scheduler import CostAwareScheduler
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.suggest import suggest_space
from raycosttune.tune.sweep_metrics import SweepMetrics
from raycosttune.tune.trainable import function_trainable, torch_trainable

__all__ = [
    "CostAwareScheduler",
    "CostAwareSearch",
    "Progress",
    "SweepMetrics",
    "function_trainable",
    "suggest_space",
    "torch_trainable",
]

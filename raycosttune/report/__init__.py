"""A sweep to look at: figures, a page, and the data behind them.

```python
from raycosttune.report import plot_cost_against_time, read_sweep

plot_cost_against_time(read_sweep("~/ray_results/NAME")).show()
```
"""

from importlib import import_module
from typing import TYPE_CHECKING

from raycosttune.report.read import read_sweep, sweep_of
from raycosttune.report.view import View, to_data

if TYPE_CHECKING:
    from raycosttune.report.cost_time import plot_cost_against_time
    from raycosttune.report.curves import plot_learning_curves
    from raycosttune.report.heat import plot_cost, plot_epoch_seconds, plot_epochs
    from raycosttune.report.page import render_page, write_page
    from raycosttune.report.study import write_study
    from raycosttune.report.timeline import plot_spend, plot_timeline
    from raycosttune.report.workers import plot_workers
else:
    DRAWING = {
        "plot_cost": "heat",
        "plot_cost_against_time": "cost_time",
        "plot_epoch_seconds": "heat",
        "plot_epochs": "heat",
        "plot_learning_curves": "curves",
        "plot_spend": "timeline",
        "plot_timeline": "timeline",
        "plot_workers": "workers",
        "render_page": "page",
        "write_page": "page",
        "write_study": "study",
    }

    def __getattr__(name: str) -> object:
        """Imports what draws when it is asked for: it needs the extra `report`."""
        if name not in DRAWING:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        try:
            return getattr(import_module(f"raycosttune.report.{DRAWING[name]}"), name)
        except ModuleNotFoundError as error:
            msg = f"{name} needs {error.name}: pip install 'raycosttune[report]'"
            raise ImportError(msg) from error


__all__ = [
    "View",
    "plot_cost",
    "plot_cost_against_time",
    "plot_epoch_seconds",
    "plot_epochs",
    "plot_learning_curves",
    "plot_spend",
    "plot_timeline",
    "plot_workers",
    "read_sweep",
    "render_page",
    "sweep_of",
    "to_data",
    "write_page",
    "write_study",
]

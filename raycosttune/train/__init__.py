"""What a training loop uses on Ray Train, or under `torchrun` alone, and what profiles a job."""

from typing import TYPE_CHECKING

from raycosttune.core.rebalance import DBS, Balance, Equal

if TYPE_CHECKING:
    from raycosttune.train.checkpoint import report, resume
    from raycosttune.train.data import prepare_data_loader
    from raycosttune.train.gradient import SampleMean, clip_gradients
    from raycosttune.train.model import prepare_model
    from raycosttune.train.probe_job import Job
    from raycosttune.train.probe_profile import profile_job
    from raycosttune.train.rebalance_callback import RebalanceCallback
    from raycosttune.train.settings import rebalance
else:
    _HOMES = {
        "Job": "probe_job",
        "RebalanceCallback": "rebalance_callback",
        "SampleMean": "gradient",
        "clip_gradients": "gradient",
        "prepare_data_loader": "data",
        "prepare_model": "model",
        "profile_job": "probe_profile",
        "rebalance": "settings",
        "report": "checkpoint",
        "resume": "checkpoint",
    }

    def __getattr__(name: str) -> object:
        """Imports PyTorch or Ray only with what needs it."""
        if name in _HOMES:
            from importlib import import_module  # noqa: PLC0415 - as the docstring says

            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


__all__ = [
    "DBS",
    "Balance",
    "Equal",
    "Job",
    "RebalanceCallback",
    "SampleMean",
    "clip_gradients",
    "prepare_data_loader",
    "prepare_model",
    "profile_job",
    "rebalance",
    "report",
    "resume",
]

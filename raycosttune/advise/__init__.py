"""Advice on workers, servers, memory and algorithms from a measured step: formulas alone.

They know neither Ray nor PyTorch; what measures a step is in `raycosttune.train`.
"""

from raycosttune.advise.algorithm import (
    AlgorithmChoice,
    BatchChoice,
    Cost,
    choose_algorithms,
    choose_batch,
)
from raycosttune.advise.allreduce import (
    Link,
    hierarchical_seconds,
    ring_bandwidth,
    ring_power,
    ring_seconds,
    servers_like_ring,
    tree_seconds,
)
from raycosttune.advise.amdahl import amdahl_speedup, serial_part, serial_part_of_overhead
from raycosttune.advise.guide import Guide, Scaling, guide
from raycosttune.advise.job import (
    Cluster,
    JobProfile,
    Memory,
    Pair,
    profile_from_data,
    profile_to_data,
)
from raycosttune.advise.loading import exposed_loading_seconds, loaders_to_hide
from raycosttune.advise.memory import (
    MemoryLine,
    fit_memory_line,
    largest_batch,
    memory_terms,
    workspace_bytes,
)
from raycosttune.advise.overlap import (
    batch_to_hide,
    bucketed_exposed_seconds,
    exposed_seconds,
    log_step_seconds,
    step_seconds,
)
from raycosttune.advise.scaling import FittedLaw, JudgedLaw, fit_law, rank_laws
from raycosttune.advise.server import (
    parameter_servers,
    server_bandwidth,
    server_loads,
    server_seconds,
)
from raycosttune.advise.speedup import (
    efficiency,
    largest_overhead_ratio,
    node_hours_factor,
    overhead_ratio,
    speedup,
    speedup_limit,
    workers_for_efficiency,
    workers_for_speedup,
)
from raycosttune.advise.step import ComputeLine, StepLaw, fit_compute_line
from raycosttune.advise.sweep import Sweep, suggest_sweep
from raycosttune.errors import InvalidAdviceError

__all__ = [
    "AlgorithmChoice",
    "BatchChoice",
    "Cluster",
    "ComputeLine",
    "Cost",
    "FittedLaw",
    "Guide",
    "InvalidAdviceError",
    "JobProfile",
    "JudgedLaw",
    "Link",
    "Memory",
    "MemoryLine",
    "Pair",
    "Scaling",
    "StepLaw",
    "Sweep",
    "amdahl_speedup",
    "batch_to_hide",
    "bucketed_exposed_seconds",
    "choose_algorithms",
    "choose_batch",
    "efficiency",
    "exposed_loading_seconds",
    "exposed_seconds",
    "fit_compute_line",
    "fit_law",
    "fit_memory_line",
    "guide",
    "hierarchical_seconds",
    "largest_batch",
    "largest_overhead_ratio",
    "loaders_to_hide",
    "log_step_seconds",
    "memory_terms",
    "node_hours_factor",
    "overhead_ratio",
    "parameter_servers",
    "profile_from_data",
    "profile_to_data",
    "rank_laws",
    "ring_bandwidth",
    "ring_power",
    "ring_seconds",
    "serial_part",
    "serial_part_of_overhead",
    "server_bandwidth",
    "server_loads",
    "server_seconds",
    "servers_like_ring",
    "speedup",
    "speedup_limit",
    "step_seconds",
    "suggest_sweep",
    "tree_seconds",
    "workers_for_efficiency",
    "workers_for_speedup",
    "workspace_bytes",
]

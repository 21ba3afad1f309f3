"""A profile that tests change one number of."""

from raycosttune.advise import (
    Cluster,
    ComputeLine,
    JobProfile,
    Link,
    Memory,
    MemoryLine,
    Pair,
)

# Half of the batch takes 0.1 + 0.32 s on each of two workers, and 0.08 s more for the exchange,
# of whose 0.1 s a fifth hides.
PROFILE = JobProfile(
    batch_size=64,
    samples=6400,
    parameter_bytes=10e6,
    compute=ComputeLine(fixed_seconds=0.1, sample_seconds=0.01),
    loading_seconds=0.2,
    waiting_seconds=0.001,
    loaders=2,
    pair=Pair(
        32, step_seconds=0.5, compute_seconds=0.42, exchange_seconds=0.1, latency_seconds=0.02
    ),
    memory=Memory(MemoryLine(1e9, 1e7), available_bytes=3e9, largest_batch=200),
)
CLUSTER = Cluster(workers=8, workers_per_node=4, link=Link(1e9, 1e-4))

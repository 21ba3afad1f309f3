"""A workload by formula, for tests and for demonstrations without data."""

import math
from dataclasses import dataclass

from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.workload import Curve

EVALUATIONS = 400
POSITIVE = (
    "samples",
    "sample_seconds",
    "noise_scale",
    "time_constant",
    "ceiling",
    "evaluations_per_epoch",
)
FROM_ZERO = ("step_overhead_seconds", "sync_seconds", "epoch_overhead_seconds", "startup")


@dataclass(frozen=True)
class AnalyticWorkload:
    """Is synchronous SGD in its textbook form.

    A step takes `sample_seconds` b / n + `step_overhead_seconds` + `sync_seconds` log2(n), an
    epoch N / b steps and `epoch_overhead_seconds`. Accuracy after e epochs is
    `ceiling` (1 - exp(-e / tau)), tau = `time_constant` (1 + b / B_noise): a larger batch
    needs more epochs, in the ratio 1 + b / B_noise. A curve ends after 400 evaluations.

    Attributes:
        space: The cells.
        samples: Size of the data set, N.
        sample_seconds: Compute of one sample on one worker.
        step_overhead_seconds: What a step costs at any batch.
        sync_seconds: What a step costs more for each doubling of the workers.
        epoch_overhead_seconds: What an epoch costs at any batch, evaluation included.
        startup: Start-up seconds of one worker; each further one adds a tenth.
        noise_scale: Gradient noise scale B_noise, samples.
        time_constant: Epochs to within 1/e of the ceiling at a batch of 0.
        ceiling: The accuracy that is never exceeded.
        evaluations_per_epoch: How often a run reports.
        name: Name of the job.

    Raises:
        InvalidWorkloadError: If a number is no finite one of at least 0, or 0 where it must not be.

    References:
        McCandlish et al. 2018 (E proportional to 1 + b / B_noise).
    """

    space: Space
    samples: int = 50_000
    sample_seconds: float = 1e-3
    step_overhead_seconds: float = 0.01
    sync_seconds: float = 0.005
    epoch_overhead_seconds: float = 1.0
    startup: float = 10.0
    noise_scale: float = 500.0
    time_constant: float = 5.0
    ceiling: float = 0.95
    evaluations_per_epoch: int = 1
    name: str = "analytic"

    def __post_init__(self) -> None:
        """Checks every number."""
        problems = []
        for name in (*POSITIVE, *FROM_ZERO):
            value = getattr(self, name)
            is_legal = math.isfinite(value) and (value > 0 or (name in FROM_ZERO and value == 0))
            if not is_legal:
                rule = "above 0" if name in POSITIVE else "of at least 0"
                problems.append(f"{name} must be a finite number {rule}, got {value!r}")
        if problems:
            raise InvalidWorkloadError("; ".join(problems))

    def epoch_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        steps = math.ceil(self.samples / cell.batch_size)
        return steps * self.step_seconds(cell) + self.epoch_overhead_seconds

    def step_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        compute = self.sample_seconds * cell.local_batch
        return compute + self.step_overhead_seconds + self.sync_seconds * math.log2(cell.workers)

    def startup_seconds(self, workers: int) -> float:
        """See Workload."""
        return self.startup * (0.9 + 0.1 * workers)

    def curve(self, batch_size: int) -> Curve:
        """See Workload."""
        tau = self.time_constant * (1 + batch_size / self.noise_scale)
        period = 1 / self.evaluations_per_epoch
        epochs = tuple((k + 1) * period for k in range(EVALUATIONS))
        values = tuple(self.ceiling * (1 - math.exp(-epoch / tau)) for epoch in epochs)
        return Curve(epochs, values, (self.noise_scale,) * len(epochs))

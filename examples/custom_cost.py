"""Scores the digits job by a metric of its own, and shows that the choice changes.

Usage: python examples/custom_cost.py [--smoke] [--storage DIR]

A licence is paid per running job and hour, whatever the job's size: a further worker costs
little, and time costs much. Takes two sweeps, one for each metric.
"""

from dataclasses import dataclass

from digits_sweep import arguments, report, start_ray, sweep

from raycosttune import Allocation, WorkerHours


@dataclass(frozen=True)
class Licensed:
    """Counts a licence for each running job, and a small rent for each worker."""

    licence_per_hour: float = 9.0
    worker_per_hour: float = 0.5
    unit: str = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns the cost of holding the workers under one licence."""
        rent = self.worker_per_hour * allocation.workers
        return (self.licence_per_hour + rent) * seconds / 3600


if __name__ == "__main__":
    options = arguments()
    start_ray()
    for cost in (WorkerHours(), Licensed()):
        print(f"scored in {cost.unit}", flush=True)
        report(sweep(cost, options.storage, smoke=options.smoke))

"""Scores the digits job by a metric of its own, and shows that the choice changes.

Usage: python examples/custom_cost.py [--smoke] [--storage DIR]

A licence is paid per running job and hour, whatever the job's size: a further worker costs
little, and time costs much. Takes two sweeps, one for each metric; `--smoke` one, by the metric
of its own. What that one would have chosen by worker-hours, or by the money of a price sheet,
takes no trial: its journal says it.
"""

from dataclasses import dataclass
from pathlib import Path

from digits_sweep import arguments, report, start_ray, sweep

from raycosttune import Allocation, Dollars, WorkerHours, read_price_sheet, read_sweep

PRICES = Path(__file__).with_name("prices.yaml")


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


def report_others(folder: Path) -> None:
    """Prints what a finished sweep comes to by worker-hours and money, on demand and spot."""
    done, sheet = read_sweep(folder), read_price_sheet(PRICES)
    on_demand = Dollars(sheet, "small")
    spot = Dollars(sheet, "small", market="spot", checkpoint_seconds=5, restart_seconds=60)
    for name, cost in (("as workers", WorkerHours()), ("on demand", on_demand), ("spot", spot)):
        print(f"{name}, no trial: {done.plan(cost=cost)}", flush=True)


if __name__ == "__main__":
    options = arguments()
    start_ray()
    for cost in (Licensed(),) if options.smoke else (WorkerHours(), Licensed()):
        print(f"scored in {cost.unit}", flush=True)
        report(sweep(cost, options.storage, smoke=options.smoke))
    report_others(max(options.storage.glob(f"{Licensed.unit}-*")))

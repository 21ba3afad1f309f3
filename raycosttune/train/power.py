"""What a machine draws, where it has counters that tell: NVML for GPUs, RAPL for processors."""

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

from raycosttune.errors import PowerUnknownError

POWERCAP = Path("/sys/class/powercap")
MILLI, MICRO = 1e-3, 1e-6


@dataclass(frozen=True)
class Counter:
    """Counts energy from some moment on.

    Attributes:
        source: What tells it, for people.
        read: Returns joules.
        wraps_at: Joules at which it begins at 0 again, or None.
    """

    source: str
    read: Callable[[], float]
    wraps_at: float | None = None

    def since(self, before: float) -> float:
        """Returns the joules since an earlier reading; it may have wrapped once."""
        joules = self.read() - before
        return joules if joules >= 0 or self.wraps_at is None else joules + self.wraps_at


@dataclass
class EnergyMeter:
    """Measures what this machine draws between the begin and the end of a `with` block.

    GPUs are counted all, whoever uses them, and processors with what runs on them; fans,
    disks and losses of the power supply are not. RAPL is mostly readable by root alone.

    Attributes:
        powercap: Where the kernel shows RAPL.
        joules: What was drawn, once the block has ended.
        seconds: How long it took.
        missing: What could not be read, and why.
    """

    powercap: Path = POWERCAP
    joules: float = 0.0
    seconds: float = 0.0
    missing: list[str] = field(default_factory=list)
    _begun: list[tuple[Counter, float]] = field(default_factory=list)
    _since: float = 0.0

    @property
    def sources(self) -> tuple[str, ...]:
        """What was counted."""
        return tuple(counter.source for counter, _ in self._begun)

    @property
    def watts(self) -> float:
        """What the machine drew on average.

        Raises:
            PowerUnknownError: If nothing here tells it, or the block has not ended.
        """
        if not self._begun or self.seconds <= 0:
            why = "; ".join(self.missing) or "the block has not ended"
            msg = (
                f"the power of this machine can't be measured: {why}. Take its watts from a data "
                "sheet or a meter: EnergyKWh(watts_per_node=...)."
            )
            raise PowerUnknownError(msg)
        return self.joules / self.seconds

    def __enter__(self) -> Self:
        """Reads the counters."""
        self.missing = []
        counters = [*self._nvml(), *self._rapl()]
        self._since = time.monotonic()
        self._begun = [(counter, counter.read()) for counter in counters]
        self.joules = self.seconds = 0.0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Reads them again; what the block raises is passed on."""
        self.joules = sum(counter.since(before) for counter, before in self._begun)
        self.seconds = time.monotonic() - self._since

    def _nvml(self) -> Iterator[Counter]:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            self.missing.append("NVML: install nvidia-ml-py")
            return
        try:
            nvml.nvmlInit()
            handles = [nvml.nvmlDeviceGetHandleByIndex(k) for k in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            self.missing.append(f"NVML: {error}")
            return
        for k, handle in enumerate(handles):
            counter = Counter(f"GPU {k}", partial(_gpu_joules, nvml, handle))
            try:
                counter.read()
            except nvml.NVMLError as error:
                self.missing.append(f"GPU {k}: {error}")
            else:
                yield counter

    def _rapl(self) -> Iterator[Counter]:
        zones = [zone for zone in sorted(self.powercap.glob("*-rapl:*")) if _is_whole(zone)]
        if not zones:
            self.missing.append(f"RAPL: nothing @ {self.powercap}")
        for zone in zones:
            try:
                most = int((zone / "max_energy_range_uj").read_text()) * MICRO
                counter = Counter(zone.name, partial(_zone_joules, zone), most)
                counter.read()
            except (OSError, ValueError) as error:
                self.missing.append(f"RAPL: {error}")
            else:
                yield counter


def measure_watts(seconds: float = 10.0, powercap: Path = POWERCAP) -> float:
    """Returns what this machine draws over the next seconds; start it while a training runs.

    Args:
        seconds: How long to measure; the counters of GPUs tell new values every 0.1 s or so.
        powercap: Where the kernel shows RAPL.

    Raises:
        PowerUnknownError: If nothing here tells it.
    """
    with EnergyMeter(powercap) as meter:
        time.sleep(seconds)
    return meter.watts


def _is_whole(zone: Path) -> bool:
    """Tells whether a zone is a whole processor: not a part of one, nor all of them together."""
    try:
        name = (zone / "name").read_text().strip()
    except OSError:
        name = ""
    return zone.name.count(":") == 1 and name.startswith("package")


def _gpu_joules(nvml: ModuleType, handle: object) -> float:
    return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * MILLI


def _zone_joules(zone: Path) -> float:
    return int((zone / "energy_uj").read_text()) * MICRO

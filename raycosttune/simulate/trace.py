"""Measured traces in a folder of CSV files."""

import logging
import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from raycosttune.core.measured import measured_space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.tidy import CsvRow, TidyFile
from raycosttune.simulate.workload import Curve

logger = logging.getLogger(__name__)
TIME_COLUMNS = ("workload", "workers", "batch_size", "epoch_seconds", "step_seconds")
CURVE_COLUMNS = ("workload", "batch_size", "epoch", "metric")
Times = dict[tuple[int, int], float]
Key = TypeVar("Key")


@dataclass(frozen=True)
class TraceWorkload(TableWorkload):
    """Is a job from CSV files: `NAME.times.csv` or `NAME.grid.csv`, and `NAME.curves.csv`.

    Times have the columns workload, device (optional), workers, batch_size (global),
    step_seconds and epoch_seconds; the grid file is taken where both are there. Curves have
    workload, batch_size, epoch and metric, seed optional: the first seed is replayed. A cell
    can be chosen where it has times and its batch has a curve. Rows that repeat are read as
    their median. A curve ends where its rows end: what a run would have shown later is
    unknown, and it ends there unreached.

    With the columns grad_sqr and grad_var a curve carries the gradient noise scale, the
    smallest batch of the file times grad_var / grad_sqr.
    """

    @classmethod
    def read(
        cls,
        folder: Path | str,
        workload: str,
        *,
        device: str = "",
        workers_per_node: int | None = None,
        startup_seconds: float = 0.0,
    ) -> "TraceWorkload":
        """Reads a job.

        Args:
            folder: Where the files lie.
            workload: Name of the job, the start of its files' names.
            device: Name of the device, or its start; needed where a file has several.
            workers_per_node: Workers of one machine; one machine holds all by default.
            startup_seconds: Start-up of every run.

        Raises:
            InvalidWorkloadError: If the job is unknown, a file is unusable (the message has
                every problem of the file) or the start-up is no time.
            InvalidSpaceError: If `workers_per_node` is no whole number of at least 1.
        """
        if not (math.isfinite(startup_seconds) and startup_seconds >= 0):
            msg = f"startup_seconds must be a finite number of at least 0, got {startup_seconds!r}"
            raise InvalidWorkloadError(msg)
        times, curves = _files(Path(folder), workload)
        epochs, steps = _read_times(times, workload, device)
        read = _read_curves(curves, workload)
        pairs = {pair for pair in epochs if pair[1] in read}
        if not pairs:
            msg = (
                f"{times} and {curves.name} must share a batch size, got "
                f"{sorted({batch for _, batch in epochs})} and {sorted(read)}"
            )
            raise InvalidWorkloadError(msg)
        space = measured_space(pairs, workers_per_node)
        return cls(
            name=workload,
            space=space,
            epochs={cell: epochs[cell.workers, cell.batch_size] for cell in space.cells},
            steps={cell: steps[cell.workers, cell.batch_size] for cell in space.cells},
            curves={batch: read[batch] for batch in space.batches},
            startup=startup_seconds,
        )


def list_workloads(folder: Path | str) -> list[str]:
    """Lists the jobs in a folder that have both times and curves."""
    return sorted(
        name
        for path in Path(folder).glob("*.curves.csv")
        if (name := path.name.removesuffix(".curves.csv"))
        if any(Path(folder, f"{name}.{kind}.csv").exists() for kind in ("grid", "times"))
    )


def _files(folder: Path, workload: str) -> tuple[Path, Path]:
    if not folder.is_dir():
        msg = f"the folder of traces must exist, got {folder}"
        raise InvalidWorkloadError(msg)
    known = list_workloads(folder)
    if workload not in known:
        msg = (
            f"the workload must be one of {known}, got {workload!r}. A workload needs "
            f"NAME.times.csv (or NAME.grid.csv) and NAME.curves.csv in {folder}."
        )
        raise InvalidWorkloadError(msg)
    grid, times = (folder / f"{workload}.{kind}.csv" for kind in ("grid", "times"))
    return grid if grid.exists() else times, folder / f"{workload}.curves.csv"


def _read_times(path: Path, workload: str, device: str) -> tuple[Times, Times]:
    """Returns the seconds of an epoch and of a step by workers and batch."""
    file = TidyFile(path)
    rows = file.rows(TIME_COLUMNS, workload)
    devices = {row.get("device") or "" for _, row in rows}
    meant = {name for name in devices if name.startswith(device)}
    if device in meant and device:
        meant = {device}
    if len(meant) > 1:
        file.problems.append(f"it has several devices, name one of them: {sorted(meant)}")
    if rows and not meant:
        file.problems.append(f"the device must start one of {sorted(devices)}, got {device!r}")
    epochs: dict[tuple[int, int], list[float]] = defaultdict(list)
    steps: dict[tuple[int, int], list[float]] = defaultdict(list)
    for line, row in rows:
        if (row.get("device") or "") in meant:
            workers, batch = file.count(line, row, "workers"), file.count(line, row, "batch_size")
            if 0 < batch < workers:
                file.problems.append(
                    f"line {line}: batch_size must be at least workers, got {batch} and {workers}"
                )
            epochs[workers, batch].append(file.number(line, row, "epoch_seconds", least=0))
            steps[workers, batch].append(file.number(line, row, "step_seconds", least=0))
    file.check()
    _say_repeats(path, epochs)
    return _medians(epochs), _medians(steps)


def _read_curves(path: Path, workload: str) -> dict[int, Curve]:
    """Returns the curves by batch."""
    file = TidyFile(path)
    seeds: dict[int, str] = {}
    points: dict[tuple[int, float], list[tuple[float, float]]] = defaultdict(list)
    for line, row in file.rows(CURVE_COLUMNS, workload):
        batch = file.count(line, row, "batch_size")
        seed = row.get("seed") or ""
        if seeds.setdefault(batch, seed) == seed:
            epoch = file.number(line, row, "epoch", least=0)
            points[batch, epoch].append((file.number(line, row, "metric"), _ratio(row)))
    file.check()
    _say_repeats(path, points)
    return {batch: _curve(points, batch, smallest=min(seeds)) for batch in seeds}


def _curve(
    points: Mapping[tuple[int, float], Sequence[tuple[float, float]]], batch: int, *, smallest: int
) -> Curve:
    of_batch = sorted((epoch, told) for (of, epoch), told in points.items() if of == batch)
    epochs = tuple(epoch for epoch, _ in of_batch)
    values = tuple(statistics.median(value for value, _ in told) for _, told in of_batch)
    ratios = [statistics.median(ratio for _, ratio in told) for _, told in of_batch]
    if any(math.isnan(ratio) for ratio in ratios):
        return Curve(epochs, values)
    return Curve(epochs, values, tuple(smallest * ratio for ratio in ratios))


def _ratio(row: CsvRow) -> float:
    """Returns grad_var / grad_sqr, NaN where the row lacks them."""
    try:
        ratio = float(row["grad_var"]) / float(row["grad_sqr"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return math.nan
    return ratio if math.isfinite(ratio) and ratio >= 0 else math.nan


def _medians(samples: Mapping[tuple[int, int], Sequence[float]]) -> Times:
    return {pair: statistics.median(values) for pair, values in samples.items()}


def _say_repeats(path: Path, samples: Mapping[Key, Collection[object]]) -> None:
    repeated = [key for key, values in samples.items() if len(values) > 1]
    if repeated:
        logger.warning(
            "%s has several rows for %d keys, the first at %s: each is read as its median",
            path,
            len(repeated),
            repeated[0],
        )

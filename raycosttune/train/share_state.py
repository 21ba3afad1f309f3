"""What was measured of workers, as plain JSON, and read again without trust."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from raycosttune.core.rebalance import Sample, WorkerLog
from raycosttune.core.value import read_count, read_real, read_text, read_whole


def write_logs(logs: Sequence[WorkerLog]) -> list[dict[str, Any]]:
    """Returns the logs as JSON has them."""
    return [
        {
            "name": log.name,
            "most": log.most,
            "samples": [list(astuple(sample)) for sample in log.samples],
        }
        for log in logs
    ]


def read_logs(state: Mapping[str, Any]) -> list[WorkerLog]:
    """Returns the logs in a state, without what can't be read."""
    logs = []
    for row in listed(state.get("workers")):
        if not isinstance(row, Mapping):
            continue
        samples = map(_sample, listed(row.get("samples")))
        logs.append(
            WorkerLog(
                name=read_text(row.get("name")) or "",
                samples=tuple(sample for sample in samples if sample is not None),
                most=read_count(row.get("most")),
            )
        )
    return logs


def listed(value: object) -> list[Any]:
    """Returns the items of a list, none of anything else."""
    return list(value) if isinstance(value, list | tuple) else []


def _sample(row: object) -> Sample | None:
    match listed(row):
        case [number, share, seconds, steps]:
            read = (read_whole(number), read_whole(share), read_real(seconds), read_count(steps))
            if None not in read:
                return Sample(*read)  # type: ignore[arg-type]  # none is None
    return None

"""Checkpoints of a training loop: weights, optimizer, and what was measured of the workers."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch

from raycosttune.core.value import read_whole
from raycosttune.errors import InvalidStateError
from raycosttune.train import place
from raycosttune.train.current import CURRENT
from raycosttune.train.exchange import Exchange, exchange
from raycosttune.train.loader import SharedLoader

WEIGHTS_FILE = "raycosttune-training.pt"


class Stateful(Protocol):
    """Is what can be saved: a model, an optimizer, a learning-rate schedule, a scaler."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state."""

    def load_state_dict(self, state: dict[str, Any], /) -> object:
        """Takes the state."""


def report(
    metrics: Mapping[str, Any],
    model: torch.nn.Module,
    *others: Stateful,
    directory: str | Path | None = None,
) -> None:
    """Reports an epoch and saves what a restart needs; all workers call it together.

    Args:
        metrics: What to report; `epoch` counts the epochs that are done.
        model: The model.
        *others: Optimizer, schedule, scaler: what else must survive, in an order that stays.
        directory: Where the checkpoint goes where Ray Train does not run the loop; none is
            saved without.

    Raises:
        InvalidStateError: If `epoch` is missing or no whole number.
    """
    epoch = read_whole(metrics.get("epoch"))
    if epoch is None:
        msg = (
            "metrics must have `epoch`, the number of epochs done, got "
            f"{metrics.get('epoch')!r}. Write report({{'epoch': epoch + 1, ...}}, model)."
        )
        raise InvalidStateError(msg)
    state = {
        "epoch": epoch,
        "model": bare(model).state_dict(),
        "others": [other.state_dict() for other in others],
    }
    rank = exchange().rank
    if place.is_ray_worker():
        import ray.train  # noqa: PLC0415 - a process under torchrun has no Ray

        with tempfile.TemporaryDirectory() as folder:
            saved = None
            if rank == 0:
                torch.save(state, Path(folder) / WEIGHTS_FILE)
                saved = ray.train.Checkpoint.from_directory(folder)
            ray.train.report(dict(metrics), checkpoint=saved)
    elif directory is not None and rank == 0:
        _write(Path(directory), state)


def resume(
    model: torch.nn.Module,
    *others: Stateful,
    loader: SharedLoader | None = None,
    directory: str | Path | None = None,
) -> int:
    """Goes on from the last checkpoint that `report` saved, if there is one.

    Args:
        model: The model.
        *others: What was saved beside it, in the same order.
        loader: Is told the epoch, so that its order goes on.
        directory: As for `report`.

    Returns:
        The number of epochs that are done, 0 where there is no checkpoint.

    Raises:
        InvalidStateError: If there is a checkpoint that can't be read, or that holds more or
            less than what is passed.
    """
    joined = exchange()
    with _opened(directory) as folder:
        found = folder is not None and (folder / WEIGHTS_FILE).exists()
        if not _agreed(joined, found=found) or folder is None:
            return 0
        state = _read(folder / WEIGHTS_FILE, len(others))
        if loader is not None and not place.is_ray_worker():
            shares = place.read_state(folder / place.STATE_FILE) if joined.rank == 0 else {}
            loader.rebalancer.load_first(shares)
    bare(model).load_state_dict(state["model"])
    for other, saved in zip(others, state["others"], strict=True):
        other.load_state_dict(saved)
    epoch = int(state["epoch"])
    if loader is not None:
        loader.set_epoch(epoch)
    return epoch


def _agreed(joined: Exchange, *, found: bool) -> bool:
    """Returns whether all workers found a checkpoint; one that begins alone would wait forever."""
    finds = [bool(row[0]) for row in joined.gather([float(found)])]
    if any(finds) != all(finds):
        msg = (
            "the checkpoint must lie where every worker can read it, got none on workers "
            f"{[rank for rank, has in enumerate(finds) if not has]}. Use shared storage."
        )
        raise InvalidStateError(msg)
    return all(finds)


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """Returns the model inside its wrapper, so that a checkpoint fits any number of workers."""
    inner = getattr(model, "module", None)
    wrapped = isinstance(model, torch.nn.parallel.DistributedDataParallel)
    return inner if wrapped and isinstance(inner, torch.nn.Module) else model


def _read(path: Path, others: int) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        parts, _, _ = state["others"], state["model"], int(state["epoch"])
    except Exception as error:
        msg = f"the checkpoint can't be read ({error}) @ {path}. Resume from an earlier one."
        raise InvalidStateError(msg) from error
    if len(parts) != others:
        msg = (
            f"resume must be given what report was beside the model, got {others} for "
            f"{len(parts)} @ {path}. Pass the same in the same order."
        )
        raise InvalidStateError(msg)
    return dict(state)


def _write(directory: Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint in place of the one before, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, write in (
        (WEIGHTS_FILE, lambda path: torch.save(state, path)),
        (place.STATE_FILE, lambda path: path.write_text(json.dumps(_shares()))),
    ):
        part = directory / f".{name}.part"
        write(part)
        part.replace(directory / name)


def _shares() -> dict[str, Any]:
    return {} if CURRENT.rebalancer is None else CURRENT.rebalancer.state()


@contextmanager
def _opened(directory: str | Path | None) -> Iterator[Path | None]:
    """Opens the folder of the checkpoint to resume from, None where there is none."""
    found = place.checkpoint()
    if found is None:
        yield None if directory is None else Path(directory)
        return
    with found.as_directory() as folder:
        yield Path(folder)

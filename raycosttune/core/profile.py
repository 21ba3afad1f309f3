"""A profile: one start of workers that times a few steps in many cells."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from raycosttune.core.observation import Ended, Observation, Recipe
from raycosttune.core.space import Allocation
from raycosttune.core.value import (
    checked,
    clean_amount,
    optional,
    read_amount,
    read_count,
    read_mapping,
    read_text,
)

STEPS = 10


@dataclass(frozen=True)
class Profile:
    """Starts workers once and times a few steps in several cells.

    Attributes:
        cells: What to time, on one type of machine. The largest worker count is started; cells
            with fewer workers are timed on a part of them while the rest stands idle.
        steps: Steps timed in each cell.
        why: One sentence for people.
        recipe: The other hyperparameters of its steps, where some affect time; else None.
    """

    cells: tuple[Allocation, ...]
    steps: int = STEPS
    why: str = ""
    recipe: Recipe | None = None

    @property
    def held(self) -> Allocation:
        """The cell with the most workers, all of which are paid for."""
        return max(self.cells, key=lambda cell: (cell.workers, cell.nodes))

    @property
    def node_type(self) -> str:
        """The type of machine that it is on."""
        return self.cells[0].node_type if self.cells else ""


@dataclass(frozen=True)
class Profiled:
    """Is what a profile showed.

    Attributes:
        epoch_seconds: Seconds of an epoch by cell, as the steps imply them; a cell that could
            not be timed is left out.
        seconds: Wall time paid, start-up included.
        startup_seconds: The part of `seconds` before the first step.
        out_of_memory: The cells that could not be timed as memory ran out.
    """

    epoch_seconds: Mapping[Allocation, float]
    seconds: float
    startup_seconds: float
    out_of_memory: tuple[Allocation, ...] = ()

    def cleaned(self) -> "Profiled":
        """Returns it without what is no time, so that it can't spoil a fit."""
        amounts = ((cell, read_amount(s)) for cell, s in self.epoch_seconds.items())
        return replace(
            self,
            epoch_seconds={cell: s for cell, s in amounts if s is not None and s > 0},
            seconds=clean_amount(self.seconds),
            startup_seconds=clean_amount(self.startup_seconds),
        )


@dataclass
class ProfileRecord:
    """Is everything known of one profile.

    Attributes:
        trial_id: Its name.
        profile: What it times.
        shown: What it showed, None while it runs and where it was lost.
        ended: Its end where it was lost before it showed anything.
        started: Seconds of the sweep before it was asked for, None where they are not known.
    """

    trial_id: str
    profile: Profile
    shown: Profiled | None = None
    ended: Ended | None = None
    started: float | None = field(default=None, compare=False)

    @property
    def is_live(self) -> bool:
        """Whether it still runs."""
        return self.shown is None and self.ended is None

    @property
    def is_failed(self) -> bool:
        """Whether it is over without having timed a cell."""
        return not self.is_live and not self.epoch_seconds

    @property
    def epoch_seconds(self) -> Mapping[Allocation, float]:
        """Seconds of an epoch in the cells that it timed."""
        return {} if self.shown is None else self.shown.epoch_seconds

    @property
    def seconds(self) -> float:
        """Wall time paid in all, as far as it is known."""
        if self.shown is not None:
            return self.shown.seconds
        return 0.0 if self.ended is None else self.ended.seconds

    @property
    def samples_per_epoch(self) -> float | None:
        """Samples of an epoch, from the seconds of the steps and those of the epochs they imply.

        The steps of a cell take `steps * b / samples` of its epoch.
        """
        if self.shown is None or not self.shown.epoch_seconds:
            return None
        training = self.shown.seconds - self.shown.startup_seconds
        whole = sum(cell.batch_size * s for cell, s in self.shown.epoch_seconds.items())
        return self.profile.steps * whole / training if training > 0 else None

    def show(self, profiled: Profiled) -> bool:
        """Takes in what it showed, which ends it; tells whether that was new."""
        is_new = self.is_live
        if is_new:
            self.shown = profiled.cleaned()
        return is_new

    def take(self, observation: Observation) -> bool:
        """Takes in its end where it showed nothing; tells whether that was new."""
        is_new = self.is_live and isinstance(observation, Ended)
        if isinstance(observation, Ended) and is_new:
            self.ended = observation.cleaned()
        return is_new


def profile_to_data(record: ProfileRecord) -> dict[str, Any]:
    """Returns a profile as JSON-able data."""
    shown = record.shown
    return {
        "trial_id": record.trial_id,
        **timed_with(record.profile),
        "started": record.started,
        "steps": record.profile.steps,
        "why": record.profile.why,
        "cells": [
            {
                **cell.data(),
                "epoch_seconds": record.epoch_seconds.get(cell),
                "out_of_memory": shown is not None and cell in shown.out_of_memory,
            }
            for cell in record.profile.cells
        ],
        "seconds": None if shown is None else shown.seconds,
        "startup_seconds": None if shown is None else shown.startup_seconds,
    }


def timed_with(profile: Profile) -> dict[str, Any]:
    """Returns the recipe of a profile as JSON-able data, nothing where it has none."""
    return {} if profile.recipe is None else {"recipe": deepcopy(profile.recipe)}


def profile_from_data(data: Mapping[str, Any]) -> ProfileRecord:
    """Reads a profile back.

    Raises:
        KeyError: If a value is missing.
        ValueError: If a value is of the wrong kind.
    """
    cells = tuple(map(Allocation.read, data["cells"]))
    record = ProfileRecord(
        checked(data, "trial_id", read_text),
        Profile(
            cells,
            checked(data, "steps", read_count),
            checked(data, "why", read_text),
            None if data.get("recipe") is None else dict(checked(data, "recipe", read_mapping)),
        ),
        started=optional(data, "started", read_amount),
    )
    seconds = optional(data, "seconds", read_amount)
    if seconds is not None:
        found = (optional(row, "epoch_seconds", read_amount) for row in data["cells"])
        timed = {cell: s for cell, s in zip(cells, found, strict=True) if s is not None}
        rows = zip(cells, data["cells"], strict=True)
        out = tuple(cell for cell, row in rows if row.get("out_of_memory") is True)
        startup = checked(data, "startup_seconds", read_amount)
        record.show(Profiled(timed, seconds, startup, out))
    return record

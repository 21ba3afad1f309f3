"""Sweeps that grow step by step, several trials at once, in any order."""

import math
from dataclasses import dataclass

from hypothesis import strategies as st

from raycosttune.core.observation import EndCause, Ended, Observation, Recipe, Report, TrialRecord
from raycosttune.core.space import Allocation, Space

SPACE = Space((1, 2, 4), (64, 128), workers_per_node=2)
FOREIGN = Allocation(3, 96)
RECIPES: tuple[Recipe, ...] = ({}, {"lr": 0.1}, {"lr": 0.2})


class StartedHours:
    """Counts hours that were begun: runs of different length cost the same."""

    unit = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return allocation.workers * math.ceil(seconds / 60)


@dataclass(frozen=True)
class Step:
    """Is what happens next: a trial starts where it is new, or goes on, or ends."""

    trial: int
    cell: Allocation
    recipe: int
    value: float | None
    seconds: float
    workers: int | None
    scale: float | None
    end: EndCause | None

    def apply(self, records: dict[str, TrialRecord]) -> None:
        """Takes the step."""
        name = f"t{self.trial}"
        if name not in records:
            recipe = dict(RECIPES[self.recipe])
            records[name] = TrialRecord(name, self.cell, recipe, len(records))
        record = records[name]
        observation: Observation = Report(
            record.epoch + 1,
            self.value,
            self.seconds,
            1.0 if not record.reports else 0.0,
            workers=self.workers,
            noise_scale=self.scale,
        )
        if self.end is not None:
            observation = Ended(self.end, seconds=self.seconds)
        record.take(observation)


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 5),
        st.sampled_from((*SPACE.cells, *SPACE.cells, FOREIGN)),
        st.integers(0, 2),
        st.sampled_from((None, 0.1, 0.5, 1.0, 1.0)),
        st.sampled_from((5.0, 10.0, 20.0, 21.0)),
        st.sampled_from((None, None, None, 1, 4)),
        st.sampled_from((None, None, 100.0)),
        st.sampled_from((None, None, None, None, *EndCause)),
    ),
    min_size=1,
    max_size=16,
)

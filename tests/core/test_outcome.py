import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.outcome import POINTS, TIME_QUANTILES, TIME_SD, earliest, outcomes
from tests.core.drive import goal
from tests.core.growing import SPACE, STEPS, StartedHours, Step

SMALL = settings(max_examples=40)
METRICS = st.sampled_from((WorkerHours(), NodeHours(), StartedHours()))


def plainly(known: Knowledge, place: int, recipe: str | None) -> Floats:
    """Returns the quantiles of a cell's time by itself."""
    cell = SPACE.cells[place]
    epochs, epoch = known.accuracy.samples(recipe, cell.batch_size), known.time.predict(cell)
    if known.time.is_empty:
        times = known.guessed_scale * epoch.mid * np.exp(TIME_SD * TIME_QUANTILES)
    elif known.time.is_measured(cell):
        times = np.array([epoch.mid])
    else:
        sd = min(TIME_SD, math.log(epoch.high / epoch.low) / 4)
        times = np.clip(epoch.mid * np.exp(sd * TIME_QUANTILES), epoch.low, epoch.high)
    values = (times[:, None] * epochs.epochs[None, :]).ravel()
    weights = np.tile(epochs.weights, len(times)) / len(times)
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) - weights[order] / 2
    levels = (np.arange(POINTS) + 0.5) / POINTS
    start = known.startup.predict(cell).mid
    return np.asarray(start + np.interp(levels, cumulative, values[order]), dtype=np.float64)


@SMALL
@given(STEPS, st.sampled_from((None, 40.0)), METRICS, st.data())
def test_many_cells_at_once_are_each_by_itself(
    steps: list[Step], limit: float | None, cost: CostMetric, data: st.DataObject
) -> None:
    records: dict[str, TrialRecord] = {}
    for step in steps[: data.draw(st.integers(0, len(steps)))]:
        step.apply(records)
    known = Knowledge(tuple(records.values()), SPACE, goal(deadline_seconds=limit), cost)
    recipe = data.draw(st.sampled_from((None, *known.recipes)))
    places = np.array(data.draw(st.lists(st.sampled_from(range(len(SPACE.cells))), unique=True)))
    seconds, costs = outcomes(known, places.astype(np.int64), recipe)
    assert seconds.shape == costs.shape == (len(places), POINTS)
    for place, row, paid in zip(places.tolist(), seconds, costs, strict=True):
        expected = plainly(known, place, recipe)
        np.testing.assert_allclose(row, expected, rtol=1e-9)
        assert (np.diff(row) >= 0).all()
        cell = SPACE.cells[place]
        assert paid.tolist() == pytest.approx([known.cost_of(cell, float(s)) for s in row])
    assert (earliest(known, places.astype(np.int64), recipe)[:, None] <= seconds).all()

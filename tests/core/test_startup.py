import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.startup import Startup

SECONDS = st.floats(0, 600)
SAMPLES = st.dictionaries(
    st.integers(1, 64), st.lists(SECONDS, min_size=1, max_size=3), min_size=1, max_size=5
)


@given(samples=SAMPLES, workers=st.integers(1, 64))
def test_a_prediction_lies_in_its_bounds(samples: dict[int, list[float]], workers: int) -> None:
    predicted = Startup(samples).predict(workers)
    assert 0 <= predicted.low <= predicted.mid <= predicted.high
    assert math.isfinite(predicted.mid)


@given(samples=SAMPLES)
def test_more_workers_never_start_sooner(samples: dict[int, list[float]]) -> None:
    startup = Startup(samples)
    mids = [startup.predict(workers).mid for workers in range(1, 65)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(mids))


@given(times=st.lists(SECONDS, min_size=4, max_size=4), seen=st.sets(st.integers(0, 3), min_size=1))
def test_the_bounds_hold_every_startup_that_does_not_fall(
    times: list[float], seen: set[int]
) -> None:
    truth = dict(zip((1, 2, 4, 8), sorted(times), strict=True))
    workers = list(truth)
    startup = Startup({workers[k]: [truth[workers[k]]] for k in seen})
    for n, seconds in truth.items():
        predicted = startup.predict(n)
        assert predicted.low - 1e-9 <= seconds <= predicted.high + 1e-9
        if workers.index(n) in seen:
            assert predicted.mid == pytest.approx(seconds)


def test_nothing_measured_bounds_nothing() -> None:
    predicted = Startup({}).predict(4)
    assert (predicted.low, predicted.mid, predicted.high) == (0.0, 0.0, math.inf)

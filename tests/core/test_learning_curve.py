import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.learning_curve import curve_evidence, scale_evidence

LOGS = np.linspace(math.log(2), math.log(2000), 400)
SCALES = np.linspace(math.log(4), math.log(40000), 200)


def likeliest(evidence: object, at: object) -> float:
    return float(np.asarray(at).ravel()[int(np.argmax(np.asarray(evidence)))])


@given(end=st.floats(12, 400), share=st.floats(0.2, 0.8), height=st.floats(0.01, 100))
def test_a_gap_that_shrinks_in_log_epochs_is_extrapolated_to_its_end(
    end: float, share: float, height: float
) -> None:
    epochs = range(1, max(int(end**share), 3) + 1)
    gaps = [(float(e), height * (1 - math.log(e) / math.log(end))) for e in epochs]
    found = likeliest(curve_evidence(gaps, LOGS), LOGS)
    # The median of the last three gaps is that of the last but one: so far behind it may be.
    late = math.log(epochs[-1]) / math.log(epochs[-2])
    assert math.log(end) - 0.05 <= found <= min(late * math.log(end), LOGS[-1]) + 0.05


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=9), st.floats(0.1, 10))
def test_only_the_shares_of_the_first_gap_count(gaps: list[float], factor: float) -> None:
    points = [(float(k), gap) for k, gap in enumerate(gaps, 1)]
    scaled = [(epoch, factor * gap) for epoch, gap in points]
    evidence = curve_evidence(points, LOGS)
    assert curve_evidence(scaled, LOGS) == pytest.approx(evidence)
    assert np.all(np.isfinite(evidence))


@pytest.mark.parametrize(
    "gaps",
    [
        [],
        [(1.0, 0.5)],
        [(1.0, 0.0), (2.0, 0.5)],
        [(1.0, 0.5), (2.0, 0.0)],
    ],
)
def test_a_curve_that_shows_no_slope_says_nothing(gaps: list[tuple[float, float]]) -> None:
    assert not curve_evidence(gaps, LOGS).any()


def test_a_run_that_stands_still_may_be_about_to_learn_and_one_ahead_of_its_law_may_not() -> None:
    """Epochs that leave a law behind count for little against it only where the gap is large."""
    slow, fast = ([(1.0, 1.0), (10.0, gap)] for gap in (0.95, 0.02))
    soon, late = math.log(11), math.log(2000)
    against_soon, _ = curve_evidence(slow, np.array([soon, late]))
    _, against_late = curve_evidence(fast, np.array([soon, late]))
    assert against_soon - curve_evidence(slow, LOGS).max() > -4
    assert against_late - curve_evidence(fast, LOGS).max() < -4


def test_a_smaller_gap_promises_fewer_epochs() -> None:
    ends = [
        likeliest(curve_evidence([(1.0, 1.0), (10.0, gap)], LOGS), LOGS)
        for gap in (0.1, 0.3, 0.5, 0.7)
    ]
    assert ends == sorted(set(ends))


@given(scale=st.floats(10, 10_000), reached=st.floats(4, 100))
def test_a_constant_noise_scale_of_a_whole_run_names_its_law(scale: float, reached: float) -> None:
    logs = np.full((len(SCALES), 1), math.log(reached))
    scales = [(k * reached / 8, scale) for k in range(1, 9)]
    evidence = scale_evidence(scales, reached, logs, SCALES)
    assert evidence.shape == logs.shape
    assert likeliest(evidence, SCALES) == pytest.approx(math.log(scale), abs=0.05)


def test_an_early_reading_counts_less_and_hints_at_a_larger_scale() -> None:
    logs = np.full((len(SCALES), 1), math.log(100))
    early, late = (
        scale_evidence([(e / 2, 100.0), (e, 100.0)], None, logs, SCALES) for e in (1.0, 50.0)
    )
    assert likeliest(early, SCALES) > likeliest(late, SCALES)
    assert np.ptp(early) < np.ptp(late)


@pytest.mark.parametrize("scales", [[], [(1.0, 0.01)]])
def test_without_a_reading_after_the_first_every_scale_is_as_likely(
    scales: list[tuple[float, float]],
) -> None:
    assert not scale_evidence(scales, None, np.zeros((3, 2)), np.zeros(3)).any()


def test_the_first_reading_of_a_run_says_nothing() -> None:
    logs = np.full((len(SCALES), 1), math.log(8))
    told = [scale_evidence([(1.0, low), (2.0, 20.0)], 8.0, logs, SCALES) for low in (1e-6, 20.0)]
    assert told[0] == pytest.approx(told[1])


def test_readings_after_a_restart_count_in_the_order_of_their_epochs() -> None:
    logs = np.full((len(SCALES), 1), math.log(8))
    rising = [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)]
    shuffled = [rising[0], rising[2], rising[1]]
    expected = scale_evidence(rising, 8.0, logs, SCALES)
    assert scale_evidence(shuffled, 8.0, logs, SCALES) == pytest.approx(expected)


def test_a_restart_that_goes_back_some_epochs_leaves_every_likelihood_a_number() -> None:
    gaps = [(float(epoch), 1.0 / epoch) for epoch in (*range(1, 11), 5)]
    told = curve_evidence(gaps, LOGS)
    assert np.isfinite(told).all()
    assert (told[np.log(10) >= LOGS] == told[0]).all()  # ten epochs were not enough

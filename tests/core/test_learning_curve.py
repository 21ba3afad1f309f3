import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.learning_curve import curve_evidence, has_stepped, scale_evidence

LOGS = np.linspace(math.log(2), math.log(2000), 400)
SCALES = np.linspace(math.log(4), math.log(40000), 200)


def likeliest(evidence: object, at: object) -> float:
    return float(np.asarray(at).ravel()[int(np.argmax(np.asarray(evidence)))])


def curve(end: float, until: float, power: float, noise: float = 0.0) -> list[tuple[float, float]]:
    """Returns a learning curve that follows a power of the epochs, 0 for their logarithm."""
    rng = np.random.default_rng(0)

    def gap(epoch: float) -> float:
        if power == 0:
            return 1 - math.log(epoch) / math.log(end)
        return float((epoch**-power - end**-power) / (1 - end**-power))

    shown = (float(epoch) for epoch in range(1, int(until) + 1))
    return [(e, max(gap(e) + noise * rng.standard_normal(), 0.0)) for e in shown]


def stepped(until: int, drop: int = 30) -> list[tuple[float, float]]:
    """Returns a curve that stands still but for one fall of its gap."""
    return [(float(epoch), 0.4 if epoch < drop else 0.05) for epoch in range(1, until + 1)]


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("end", [50.0, 200.0])
def test_a_curve_that_follows_a_power_of_the_epochs_is_extrapolated_to_its_end(
    power: float, end: float
) -> None:
    found = likeliest(curve_evidence(curve(end, end / 2, power), LOGS), LOGS)
    assert found == pytest.approx(math.log(end), abs=0.35)


@pytest.mark.parametrize("rate", [2.0, 4.0])
@pytest.mark.parametrize("part", [0.4, 0.6])
def test_an_exponential_curve_is_extrapolated_to_its_end(rate: float, part: float) -> None:
    end = 100.0
    left = [(e, math.exp(-rate * e / end) - math.exp(-rate)) for e in np.arange(1.0, part * end)]
    found = likeliest(curve_evidence(left, LOGS), LOGS)
    assert found == pytest.approx(math.log(end), abs=0.1)


def test_a_bent_curve_is_not_taken_for_one_that_soon_ends() -> None:
    """On a logarithm's line through both ends the target is nearer than the bend says."""
    bent = curve(100, 40, power=0.75)
    found = likeliest(curve_evidence(bent, LOGS), LOGS)
    line = math.log(40) / (1 - bent[-1][1])
    assert found > line + 0.2


def test_what_fits_its_law_well_is_foretold_more_closely() -> None:
    smooth, rough = (curve_evidence(curve(100, 40, 0.25, noise), LOGS) for noise in (0.0, 0.1))
    spread = [np.ptp(LOGS[told > told.max() - 2]) for told in (smooth, rough)]
    assert spread[0] < spread[1]


def test_a_noisy_curve_reaches_the_target_before_its_trend_does() -> None:
    near = [(float(e), 0.06 + 0.05 * (-1) ** e if e > 1 else 1.0) for e in range(1, 30)]
    calm = [(e, 0.06 if e > 1 else 1.0) for e, _ in near]
    soon, late = np.array([math.log(32)]), np.array([math.log(320)])
    told = [float((curve_evidence(c, soon) - curve_evidence(c, late))[0]) for c in (near, calm)]
    assert told[0] > told[1]


def test_once_its_rate_fell_in_a_step_a_curve_says_nothing() -> None:
    assert curve_evidence(stepped(33), LOGS).any()  # it may reach the target with this fall
    assert not curve_evidence(stepped(45), LOGS).any()


@pytest.mark.parametrize("until", [1, 2, 20, 29, 33])
def test_no_step_is_seen_before_it_and_next_to_it(until: int) -> None:
    assert not has_stepped(stepped(until))


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5, 1.0])
def test_a_smooth_curve_has_no_step(power: float) -> None:
    assert not any(has_stepped(curve(100, until, power)) for until in range(1, 100))


def test_one_lucky_evaluation_is_no_step() -> None:
    lucky = [(float(epoch), 0.01 if epoch == 30 else 0.4) for epoch in range(1, 60)]
    assert not has_stepped(lucky)


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

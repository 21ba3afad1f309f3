import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.lag import GROWTHS, LAG_SD, lag_evidence

LOGS = np.linspace(math.log(2), math.log(2000), 800)
Curve = list[tuple[float, float]]


def curve(lag: float, growth: float = 0.5, *, end: float = 100.0, until: float = 1.0) -> Curve:
    """Returns a curve that comes to each level later, at the target by a lag in parts of `end`."""
    shown = np.arange(1.0, until * end + 1)
    gaps = 1 - np.sqrt(shown / end)
    later = shown + lag * end * (shown / end) ** growth
    return list(zip(later.tolist(), gaps.tolist(), strict=True))


def told(gaps: Curve, other: Curve, end: float = 100.0) -> float:
    found = lag_evidence(gaps, other, np.array(end), LOGS)
    assert found is not None
    return float(np.exp(LOGS[int(found.argmax())]))


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("lag", [0.3, 1.0, -0.1])
@pytest.mark.parametrize("until", [0.1, 0.5, 0.9])
def test_a_lag_that_grows_with_a_power_of_the_epochs_leaves_the_end_likely(
    growth: float, lag: float, until: float
) -> None:
    found = lag_evidence(curve(lag, growth, until=until), curve(0), np.array(100.0), LOGS)
    assert found is not None
    true = float(np.interp(math.log(100 * (1 + lag)), LOGS, found))
    assert true > found.max() - math.log(4)


@pytest.mark.parametrize("lag", [0.3, 1.0, -0.1])
def test_the_later_the_level_the_nearer_is_the_end_to_what_is_told(lag: float) -> None:
    off = [abs(math.log(told(curve(lag, until=u), curve(0)) / (1 + lag) / 100)) for u in (0.1, 0.9)]
    assert off[1] <= off[0] + 0.01
    assert off[1] < 0.03


def test_where_both_are_at_a_level_at_once_both_are_taken_to_need_as_many_epochs() -> None:
    assert told(curve(0, until=0.3), curve(0)) == pytest.approx(100, rel=0.02)


def test_each_hypothesis_of_where_the_other_ends_has_its_own() -> None:
    ends = np.array([50.0, 100.0, 200.0])[:, None]
    ahead = curve(0, until=0.4)
    found = lag_evidence(curve(0, until=0.3), ahead, ends, np.tile(LOGS, (3, 1)))
    assert found is not None
    assert np.exp(LOGS[found.argmax(axis=1)]) == pytest.approx([50, 100, 200], rel=0.02)


def test_the_noisier_the_evaluations_the_less_is_told() -> None:
    rough = [(e, gap + 0.7 * (e % 2 == 0)) for e, gap in curve(0)]
    spread = []
    for other in (curve(0), rough):
        found = lag_evidence(curve(0, until=0.5), other, np.array(100.0), LOGS)
        assert found is not None
        spread.append(np.ptp(LOGS[found > found.max() - 1]))
    assert spread[1] > 1.3 * spread[0]


@pytest.mark.parametrize(
    ("gaps", "other"),
    [
        ([], [(1.0, 0.5)]),
        ([(1.0, 0.5)], []),
        ([(1.0, 0.9)], [(1.0, 0.8), (2.0, 0.0)]),  # farther off than the other ever was
        ([(1.0, 0.1)], [(1.0, 0.8), (2.0, 0.4)]),  # nearer than the other ever was
        ([(1.0, 0.0)], [(1.0, 0.8), (2.0, 0.0)]),  # at the target, which another bound forbids
    ],
)
def test_without_a_level_that_both_have_seen_nothing_is_told(gaps: Curve, other: Curve) -> None:
    assert lag_evidence(gaps, other, np.array(100.0), LOGS) is None


levels = st.lists(st.floats(0.01, 1), min_size=1, max_size=30)


@given(levels, levels, st.floats(1, 1000))
def test_whatever_was_reported_the_evidence_is_finite(
    some: list[float], others: list[float], end: float
) -> None:
    gaps, other = (list(enumerate(each, start=1)) for each in (some, others))
    found = lag_evidence(gaps, other, np.array(end), LOGS)
    if found is not None:
        assert np.isfinite(found).all()
        assert found.max() <= -math.log(LAG_SD)

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.epochs import EARLIEST, Epochs, Seen

RUNS = st.lists(
    st.builds(
        lambda low, more: Epochs(64, "a", low, low + more),
        st.sampled_from((0.0, 0.25, 1.0, 3.0)) | st.floats(0, 100),
        st.just(math.inf) | st.floats(1e-6, 100),
    ),
    min_size=1,
    max_size=6,
)


@given(RUNS)
def test_the_figures_are_those_of_all_runs(runs: list[Epochs]) -> None:
    seen = Seen.of(64, runs)
    reached = [math.log(run.high) for run in runs if not run.is_censored]
    assert seen.low == max(run.low for run in runs)
    assert seen.high == min(run.high for run in runs)
    assert math.exp(seen.log_low) >= seen.low * (1 - 1e-12)
    assert seen.reached == len(reached)
    assert sum(seen.counts.values()) == len(runs)
    assert all(runs.count(Epochs(64, "a", *key)) == n for key, n in seen.counts.items())
    assert sum(seen.vain.values()) == len(runs) - len(reached)
    if reached:
        assert seen.mean == pytest.approx(np.mean(reached), abs=1e-9)
        assert seen.squares == pytest.approx(len(reached) * np.var(reached), abs=1e-9)
        assert math.exp(seen.log_high) == pytest.approx(seen.high)


def test_what_lies_before_a_first_evaluation_is_less_than_it() -> None:
    assert math.exp(Seen.of(64, [Epochs(64, "a", 0.0, 4.0)]).log_low) == pytest.approx(0.5)
    assert math.exp(Seen.of(64, [Epochs(64, "a", 0.0, 0.1)]).log_low) == pytest.approx(0.05)
    vain = Seen.of(64, [Epochs(64, "a", 0.0, math.inf)])
    assert math.exp(vain.log_low) == pytest.approx(EARLIEST)


def test_runs_reach_the_target_somewhere_between_two_evaluations() -> None:
    mean, sd = Seen.of(64, [Epochs(64, "a", 2.0, 3.0), Epochs(64, "a", 9.0, math.inf)]).middle
    assert mean == pytest.approx((math.log(2) + math.log(3)) / 2)
    assert sd == pytest.approx(math.log(1.5) / math.sqrt(12))
    twice, _ = Seen.of(64, [Epochs(64, "a", 2.0, 3.0), Epochs(64, "a", 3.0, 4.0)]).middle
    assert twice == pytest.approx((math.log(2) + 2 * math.log(3) + math.log(4)) / 4)


def test_runs_are_added_to_a_new_sum() -> None:
    one = Seen.of(64, [Epochs(64, "a", 1.0, 2.0)])
    two = one.plus(Epochs(64, "a", 3.0, math.inf))
    assert (one.low, two.low) == (1.0, 3.0)
    assert (len(one.counts), len(two.counts)) == (1, 2)
    assert two.vain == {3.0: 1}

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    ComputeLine,
    InvalidAdviceError,
    StepLaw,
    fit_compute_line,
    overhead_ratio,
    speedup,
    step_seconds,
)

LINES = st.builds(ComputeLine, st.floats(0, 1), st.floats(1e-5, 0.1))


@given(LINES, st.lists(st.integers(1, 512), min_size=2, max_size=5, unique=True))
def test_steps_on_a_line_give_the_line(line: ComputeLine, batches: list[int]) -> None:
    found = fit_compute_line({batch: line.seconds(batch) for batch in batches})
    for batch in (min(batches), max(batches)):
        assert found.seconds(batch) == pytest.approx(line.seconds(batch), rel=1e-6)


@given(LINES, st.floats(0, 1), st.integers(1, 64))
def test_one_worker_exchanges_nothing(line: ComputeLine, pair: float, batch: int) -> None:
    assert StepLaw(line, pair).seconds(1, batch) == line.seconds(batch)


@given(LINES, st.floats(0, 1), st.integers(1, 64))
def test_two_workers_take_their_share_and_the_exchange(
    line: ComputeLine, pair: float, share: int
) -> None:
    law = StepLaw(line, pair, overlap=2.0)
    assert law.seconds(2, 2 * share) == step_seconds(line.seconds(share), pair, 2.0)


@given(st.floats(1e-4, 0.1), st.floats(0, 1), st.integers(2, 64))
def test_without_fixed_cost_it_is_the_lemma_from_two_workers_on(
    sample: float, pair: float, workers: int
) -> None:
    law, batch = StepLaw(ComputeLine(0.0, sample), pair), 64 * workers
    one = law.seconds(1, batch)
    # A ring of n takes 2 (n - 1) / n of a pair's exchange: an overhead of 2, less a shared part.
    ratio = overhead_ratio(one - 2 * pair, 2 * pair) if one > 2 * pair else None
    if ratio is not None:
        assert law.speedup(workers, batch) == pytest.approx(speedup(workers, ratio))


@given(LINES, st.floats(0, 1), st.integers(2, 64))
def test_the_smallest_batch_that_hides_the_exchange(
    line: ComputeLine, pair: float, workers: int
) -> None:
    law = StepLaw(line, pair)
    batch = law.hiding_batch(workers)
    exchange = law.exchange_seconds(workers)
    assert line.seconds(batch / workers) >= exchange * (1 - 1e-9)
    if batch > workers:
        assert line.seconds(batch / workers - 1) < exchange * (1 + 1e-9)


def test_a_case_worked_by_hand() -> None:
    # 0.1 s and 0.01 s a sample: one takes 0.1 + 0.64 s, four take 0.1 + 0.16 + 0.2 x 3/2 s.
    law = StepLaw(ComputeLine(0.1, 0.01), pair_seconds=0.2)
    assert law.seconds(1, 64) == pytest.approx(0.74)
    assert law.seconds(4, 64) == pytest.approx(0.56)
    assert law.speedup(4, 64) == pytest.approx(0.74 / 0.56)
    assert law.seconds(4, 65) == pytest.approx(0.57)  # the largest share counts
    assert law.hiding_batch(4) == 4 * 20


def test_across_nodes_there_is_a_ring_of_rings() -> None:
    line = ComputeLine(0.0, 0.01)
    law = StepLaw(line, 0.2, workers_per_node=4, far_pair_seconds=1.0)
    assert law.exchange_seconds(4) == pytest.approx(0.3)
    assert law.exchange_seconds(8) == pytest.approx(0.3 + 1.0)
    assert law.exchange_seconds(5) == pytest.approx(0.3 + 1.0)
    assert law.exchange_seconds(16) == pytest.approx(0.3 + 1.5)
    assert StepLaw(line, 0.2, workers_per_node=1, far_pair_seconds=1.0).exchange_seconds(2) == 1.0
    with pytest.raises(InvalidAdviceError, match="at most 4: time two workers on two nodes too"):
        StepLaw(line, 0.2, workers_per_node=4).exchange_seconds(5)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidAdviceError, match="at least two batches"):
        fit_compute_line({8: 0.1})
    with pytest.raises(InvalidAdviceError, match="fixed_seconds"):
        ComputeLine(-1, 0)
    with pytest.raises(InvalidAdviceError, match="pair_seconds"):
        StepLaw(ComputeLine(0, 1), -1)
    with pytest.raises(InvalidAdviceError, match="overlap"):
        StepLaw(ComputeLine(0, 1), 1, overlap=0.5)
    with pytest.raises(InvalidAdviceError, match="crowding"):
        StepLaw(ComputeLine(0, 1), 1, crowding=0.0)

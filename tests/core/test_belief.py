import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.belief import STAGES, Belief, ByBatch, Clues
from raycosttune.core.digest import Digest, summed_up
from raycosttune.core.goal import Goal
from raycosttune.core.law import law
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.tally import Tally

BATCHES = (64, 256, 1024)
GRID = law(BATCHES)
GOAL = Goal(target=1.0, metric="accuracy", mode="max")
SMALL = settings(max_examples=40)


def clues(deadline: float | None = None, period: float = 1.0, seconds: float = 10.0) -> Clues:
    return Clues(deadline, np.full(len(BATCHES), seconds), 5.0, period)


def run(
    batch: int,
    epochs: int,
    *,
    reached: bool = False,
    recipe: str = "a",
    scale: float | None = None,
    has_values: bool = False,
) -> Digest:
    """Returns a run whose curve says nothing, but for its end and its noise scale."""
    value = 0.0 if has_values else None
    reports = [Report(float(k), value, 1.0, noise_scale=scale) for k in range(1, epochs + 1)]
    if reached:
        reports[-1] = Report(float(epochs), 1.0, 1.0, noise_scale=scale)
    return summed_up(TrialRecord("t", Allocation(1, batch), {"name": recipe}, 0, reports), GOAL)


def key(recipe: str) -> str:
    return run(64, 1, recipe=recipe).recipe


def added_up(runs: Sequence[Digest]) -> dict[str, ByBatch]:
    tally = Tally(Space((1,), BATCHES), GOAL)
    for place, digest in enumerate(runs):
        tally.add(digest, place)
    return {key: history.runs for key, history in tally.recipes.items()}


def belief(runs: Sequence[Digest], recipe: str | None = "a", **hints: float) -> Belief:
    return Belief(GRID, None if recipe is None else key(recipe), added_up(runs), clues(**hints))


def mean_log(found: Belief, batch: int) -> float:
    return float(found.expected(found.log_epochs[:, :, BATCHES.index(batch)]))


RUNS = st.lists(
    st.builds(
        run,
        st.sampled_from(BATCHES),
        st.integers(1, 60),
        reached=st.booleans(),
        recipe=st.sampled_from("abc"),
        scale=st.none() | st.floats(1, 1e5),
        has_values=st.booleans(),
    ),
    max_size=4,
)


@SMALL
@given(RUNS, st.sampled_from((None, "a", "z")), st.none() | st.floats(20, 1e5))
def test_the_weights_sum_to_one(
    runs: list[Digest], recipe: str | None, deadline: float | None
) -> None:
    found = Belief(GRID, None if recipe is None else key(recipe), added_up(runs), clues(deadline))
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights >= 0).all()
    assert float(found.expected(np.ones_like(found.weights))) == pytest.approx(1)


@SMALL
@given(
    RUNS,
    st.sampled_from(BATCHES),
    st.integers(0, 400),
    st.sampled_from((0.25, 1.0, 3.0)),
)
def test_stages_rise_and_are_evaluations_still_to_come(
    runs: list[Digest], batch: int, done: int, period: float
) -> None:
    after = done * period
    stages = belief(runs, period=period).stages(batch, after)
    assert stages.shape == (STAGES,)
    assert (np.diff(stages) >= 0).all()
    assert stages[0] >= after + period * (1 - 1e-6)
    ahead = (stages - after) / period
    assert ahead == pytest.approx(np.round(ahead), abs=1e-6)


def test_a_run_is_seen_afresh_without_the_epochs_that_it_made() -> None:
    """They are cut off what lies ahead, and not off what the run looked like before."""
    known = [run(64, 30, reached=True), run(1024, 34, reached=True)]
    before, found = belief(known), belief([*known, run(256, 30)])
    afresh, ahead = found.afresh(256, 30.0), found.stages(256, 30.0)
    assert afresh[0] < 30 < ahead[0]
    assert np.median(afresh) == pytest.approx(np.median(before.stages(256, 0.0)), rel=0.1)
    assert np.median(ahead) > np.median(afresh)
    assert (before.afresh(256, 0.0) == before.stages(256, 0.0)).all()


def smooth(batch: int, end: int, until: int) -> Digest:
    """Returns a run whose metric follows the root of its epochs, the target at `end`."""
    shown = range(1, until + 1)
    reports = [Report(float(k), math.sqrt(k / end), 1.0) for k in shown]
    return summed_up(TrialRecord("t", Allocation(1, batch), {"name": "a"}, 0, reports), GOAL)


def width(epochs: Floats) -> float:
    low, high = np.quantile(np.log(epochs), (0.05, 0.95))
    return float(high - low)


@pytest.mark.parametrize("ahead", [[], [smooth(64, 80, 80)], [smooth(64, 80, 79)]])
def test_a_curve_tells_more_of_its_own_run_than_of_another_one_at_its_batch(
    ahead: list[Digest],
) -> None:
    found = belief([*ahead, smooth(256, 100, 80)])
    assert found.needs(256, 80.0)[0] > 80
    assert width(found.needs(256, 80.0)) < 0.85 * width(found.afresh(256, 80.0))


def test_a_second_run_shares_half_of_what_held_the_first_one_up() -> None:
    """It is likelier late than one that nothing is known of, and may still be sooner."""
    known = [run(64, 30, reached=True), run(1024, 34, reached=True)]
    before, after = (belief(runs).stages(256, 0.0) for runs in (known, [*known, run(256, 34)]))
    assert (before <= 34).mean() > 0.6
    assert 0 < (after <= 34).mean() < 0.5
    assert (after >= before).all()


def test_each_further_run_in_vain_makes_another_one_likelier_to_be() -> None:
    """As if each run at the batch were as likely as any other to be the first one that is done."""
    known = [run(64, 30, reached=True), run(1024, 34, reached=True)]
    chances = []
    for count in (1, 2, 4, 8, 400):
        found = belief([*known, *(run(256, 34) for _ in range(count))])
        chances.append((found.needs(256, 0.0) <= 34).mean())
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 2 * chances[3] > 0
    assert chances[4] == 0


def test_much_shorter_runs_in_vain_say_no_more() -> None:
    long, short = [run(256, 34)], [run(256, 5) for _ in range(3)]
    one, all_four = belief(long).stages(256, 0.0), belief([*long, *short]).stages(256, 0.0)
    assert all_four == pytest.approx(one, rel=0.05)


def test_a_batch_that_reached_the_target_is_seen_afresh_by_that() -> None:
    found = belief([run(64, 30, reached=True)])
    assert found.stages(64, 50.0)[0] > 50
    assert (found.afresh(64, 50.0) == found.stages(64, 0.0)).all()


@SMALL
@given(st.sampled_from(BATCHES), st.sampled_from(BATCHES), st.integers(1, 80), st.integers(1, 80))
def test_a_longer_run_in_vain_never_shortens_what_is_expected(
    ran: int, asked: int, short: int, more: int
) -> None:
    before, after = (belief([run(ran, epochs)]) for epochs in (short, short + more))
    assert mean_log(after, asked) >= mean_log(before, asked) - 1e-6
    assert (after.stages(asked, 0.0) >= before.stages(asked, 0.0)).all()


@given(st.sampled_from(BATCHES), st.integers(2, 300))
def test_a_success_is_what_is_expected_of_its_batch(batch: int, epochs: int) -> None:
    found = belief([run(batch, epochs, reached=True)])
    assert mean_log(found, batch) == pytest.approx(math.log(epochs), abs=0.3)
    assert np.median(found.stages(batch, 0.0)) == pytest.approx(epochs, rel=0.1, abs=1)


def test_a_run_that_is_evaluated_twice_is_expected_to_need_both_again() -> None:
    """What lies between the evaluations is no reason to expect a third one."""
    found = belief([run(64, 2, reached=True)]).stages(64, 0.0)
    assert np.mean(found == 2) > 0.5
    assert np.mean(found <= 2) > 0.9


def test_epochs_count_up_to_the_evaluation_that_shows_them() -> None:
    found = belief([], period=3.0).epochs
    assert found.min() == 3.0
    assert found / 3 == pytest.approx(np.round(found / 3))
    assert (found >= np.exp(belief([]).log_epochs) * (1 - 1e-6)).all()


def test_the_largest_batch_is_expected_to_be_about_the_noise_scale() -> None:
    found = belief([])
    log_scale = found.expected(np.broadcast_to(GRID.log_scale[:, None], found.weights.shape))
    assert float(log_scale) == pytest.approx(math.log(BATCHES[-1]), abs=1e-9)


def test_several_successes_are_averaged_and_narrow_the_stages() -> None:
    one = belief([run(64, 30, reached=True)]).stages(64, 0.0)
    many = belief([run(64, e, reached=True) for e in (28, 30, 32, 30)]).stages(64, 0.0)
    assert np.ptp(many) < np.ptp(one)
    assert np.median(many) == pytest.approx(30, abs=1)


def test_a_larger_noise_scale_brings_the_epochs_of_large_and_small_batches_together() -> None:
    apart = []
    for scale in (30.0, 300.0, 3000.0, 30_000.0):
        found = belief([run(256, 20, reached=True, scale=scale)])
        apart.append(mean_log(found, 1024) - mean_log(found, 64))
    assert apart == sorted(apart, reverse=True)
    assert apart[0] > apart[-1] + 0.5


def test_readings_of_a_run_that_goes_on_count_too() -> None:
    low, high = (belief([run(256, 20, scale=scale)]) for scale in (30.0, 30_000.0))
    ratios = [mean_log(found, 1024) - mean_log(found, 64) for found in (low, high)]
    assert ratios[0] > ratios[1]


def test_only_the_longest_run_in_vain_counts_for_its_curve() -> None:
    """A shorter one adds that it ended in vain, which the longer one says already."""
    short, long = run(64, 5, has_values=True), run(64, 40, has_values=True)
    both = belief([short, long])
    assert both.weights == pytest.approx(belief([long, short]).weights)
    assert mean_log(both, 64) == pytest.approx(mean_log(belief([long]), 64), abs=0.02)


def test_other_recipes_say_what_a_new_one_may_need() -> None:
    unknown = belief([], recipe=None)
    one = belief([run(64, 200, reached=True)], recipe=None)
    two = belief([run(64, 200, reached=True), run(64, 190, reached=True, recipe="b")], recipe=None)
    far = abs(mean_log(unknown, 64) - math.log(200))
    assert abs(mean_log(one, 64) - math.log(200)) < far / 2
    assert spread(one) > spread(two)
    vain = belief([run(64, 200)], recipe=None)
    assert mean_log(vain, 64) == pytest.approx(mean_log(unknown, 64), abs=0.2)


def spread(found: Belief) -> float:
    logs = found.log_epochs[:, :, 0]
    return float(found.expected((logs - found.expected(logs)) ** 2))


def test_a_deadline_hints_at_epochs_that_fit_into_it() -> None:
    found = [mean_log(belief([], deadline=limit), 64) for limit in (100.0, 1000.0, 10_000.0)]
    assert found == sorted(found)
    for limit, log_epochs in zip((100.0, 1000.0, 10_000.0), found, strict=True):
        assert math.exp(log_epochs) * 10 < limit


def test_more_epochs_than_any_law_explains_leave_the_next_evaluation() -> None:
    found = belief([])
    assert (found.stages(64, 1e12) == 1e12 + 1).all()
    reports = [Report(1e12, None, 1.0)]
    vain = summed_up(TrialRecord("t", Allocation(1, 64), {"name": "a"}, 0, reports), GOAL)
    assert (belief([vain]).needs(64, 0.0) == 1e12).all()


@given(st.sampled_from(BATCHES), st.lists(st.floats(0, 1e4), min_size=2, max_size=5))
def test_fewer_runs_survive_more_epochs(batch: int, epochs: list[float]) -> None:
    chances = belief([]).survival(batch, np.sort(epochs))
    assert chances.shape == (len(epochs), *belief([]).weights.shape)
    assert (np.diff(chances, axis=0) <= 0).all()
    assert ((chances >= 0) & (chances <= 1)).all()


def test_a_trial_without_a_report_says_nothing() -> None:
    silent = summed_up(TrialRecord("t", Allocation(1, 64), {"name": "a"}, 0), GOAL)
    assert belief([silent]).weights == pytest.approx(belief([]).weights)

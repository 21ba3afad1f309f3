import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from raycosttune.core.array import Floats
from raycosttune.core.digest import Digest, summed_up
from raycosttune.core.evidence import GRID_SD, RUN_SD, evidence, run_evidence
from raycosttune.core.lag import lag_evidence
from raycosttune.core.law import law
from raycosttune.core.learning_curve import curve_evidence, scale_evidence
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.tally import Tally
from tests.core.drive import goal

BATCHES = (64, 256, 1024)
GRID = law(BATCHES)
SMALL = settings(max_examples=40)


def run(batch: int, epochs: int, scale: float | None, *, reached: bool, curve: bool) -> Digest:
    values = [0.5 * k / epochs if curve else None for k in range(1, epochs + 1)]
    reports = [Report(float(k), v, 1.0, noise_scale=scale) for k, v in enumerate(values, 1)]
    if reached:
        reports.append(Report(epochs + 1.0, 1.0, 1.0, noise_scale=scale))
    return summed_up(TrialRecord("t", Allocation(1, batch), {}, 0, reports), goal())


RUNS = st.lists(
    st.builds(
        run,
        st.sampled_from(BATCHES),
        st.sampled_from((1, 2, 5, 30)),
        st.none() | st.sampled_from((10.0, 1e4)),
        reached=st.booleans(),
        curve=st.booleans(),
    ),
    max_size=7,
)


def plainly(runs: list[Digest]) -> Floats:
    """Adds up what each run says by itself."""
    total = np.zeros((len(GRID.log_scale), len(GRID.offsets)))
    longest: dict[int, Digest] = {}
    for one in runs:
        assert one.epochs is not None
        batch, low, high = one.epochs.batch_size, one.epochs.low, one.epochs.high
        logs = GRID.log_epochs[:, :, BATCHES.index(batch)]
        if one.epochs.is_censored:
            total += log_ndtr((logs - math.log(low)) / RUN_SD)
            if batch not in longest or longest[batch].record.epoch < one.record.epoch:
                longest[batch] = one
        else:
            gap = math.log(high / max(low, high / 2))
            sd = math.sqrt(RUN_SD**2 + gap**2 / 12 + GRID_SD**2)
            total += -0.5 * ((math.log(high) - gap / 2 - logs) / sd) ** 2
            total += scale_evidence(one.scales, high, logs, GRID.log_scale)
    for batch, one in longest.items():
        logs = GRID.log_epochs[:, :, BATCHES.index(batch)]
        total += beside(batch, one, longest, runs)
        total += scale_evidence(one.scales, None, logs, GRID.log_scale)
    return total


def beside(batch: int, one: Digest, longest: dict[int, Digest], runs: list[Digest]) -> Floats:
    """Reads a curve by itself, or beside the nearest one that came nearer to the target."""
    logs = GRID.log_epochs[:, :, BATCHES.index(batch)]
    own = curve_evidence(one.gaps, logs)
    hits = {each.record.allocation.batch_size: each for each in runs if each.reached}

    def progress(other: int) -> tuple[float, int]:
        gaps = longest[other].gaps if other not in hits else [(0.0, 0.0)]
        return min((gap for _, gap in gaps), default=math.inf), other

    ahead = [b for b in {**longest, **hits} if b != batch and progress(b) < progress(batch)]
    if not ahead:
        return own
    leader = min(ahead, key=lambda b: (b not in hits, abs(math.log2(b / batch)), b))
    if leader in hits:
        end = hits[leader].record.epoch
        curve = (*hits[leader].gaps[:-1], (end, 0.0))
        found = lag_evidence(one.gaps, curve, np.array(end), logs)
        return own if found is None else found
    ends = np.exp(GRID.log_epochs[:, :, BATCHES.index(leader)])
    found = lag_evidence(one.gaps, longest[leader].gaps, ends, logs)
    return own if found is None else own + found


@SMALL
@given(RUNS)
def test_the_sum_over_batches_is_that_over_runs(runs: list[Digest]) -> None:
    tally = Tally(Space((1,), BATCHES), goal())
    for turn, one in enumerate(runs):
        tally.add(one, turn)
    found = [some for history in tally.recipes.values() for some in history.runs.values()]
    for _ in range(2):  # the second time some of it is remembered, and nothing has changed it
        np.testing.assert_allclose(evidence(GRID, found), plainly(runs), rtol=1e-9, atol=1e-9)


def test_a_run_is_read_by_its_curve_and_beside_one_at_the_target() -> None:
    some, logs = run(256, 30, None, reached=False, curve=True), np.linspace(3.0, 9.0, 50)
    for other in (
        run(64, 30, None, reached=True, curve=True),
        run(64, 5, None, reached=False, curve=True),
    ):
        tally = Tally(Space((1,), BATCHES), goal())
        for turn, one in enumerate((some, other)):
            tally.add(one, turn)
        (history,) = tally.recipes.values()
        found = run_evidence(history.runs[256], history.runs.values(), logs)
        if other.reached:
            beside = lag_evidence(some.gaps, history.runs[64].curve, np.array(31.0), logs)
            assert beside is not None
            assert (found == beside).all()
        else:
            assert (found == curve_evidence(some.gaps, logs)).all()

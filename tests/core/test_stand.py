"""What is expected of a run that stands still."""

import math

import numpy as np
import pytest

from raycosttune.core.metric_surface import Stand
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Allocation
from tests.core.test_metric_surface import Mode, aim, surface


def settled(epochs: int, value: float, noise: float = 0.0, sign: int = 1) -> TrialRecord:
    """Is a run that comes to a value with the log of the epochs in half of them, and stays."""
    done = np.log1p(np.arange(1, epochs + 1)) / math.log1p(epochs / 2)
    off = noise * np.random.default_rng(0).standard_normal(epochs)
    values = sign * (value * np.minimum(done, 1.0) + off)
    reports = [Report(float(e), float(v), 30.0) for e, v in enumerate(values, 1)]
    return TrialRecord("t", Allocation(1, 64), {}, 0, reports, Ended(EndCause.STOPPED))


@pytest.mark.parametrize(("epochs", "times"), [(10, 10), (20, 10), (40, 10), (100, 5)])
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_run_that_was_flat_for_its_last_half_is_not_taken_to_rise_a_lot_at_ten_times_its_epochs(
    epochs: int, times: int, noise: float, mode: Mode
) -> None:
    """Beliefs know no epochs beyond some 1400: of a run of 100, five times."""
    sign = 1 if mode == "max" else -1
    found = surface(settled(epochs, 1.5, noise, sign), goal=aim(mode))
    soon, far = (found.predict(64, many * epochs) for many in (2, times))
    assert sign * soon.mid <= 1.5 + 0.1 * 1.5
    assert sign * far.mid <= 1.5 + 2 / 3 * 1.5
    worst = far.low if mode == "max" else -far.high
    assert worst <= 1.5 + 0.3 * 1.5
    best = far.high if mode == "max" else -far.low
    assert best >= 1.5 + 0.75 * 1.5  # it may rise, too
    assert sign * found.predict(64, epochs).mid == pytest.approx(1.5, abs=0.05)


def test_a_stand_lasts_as_long_again_then_the_run_goes_on_as_it_came() -> None:
    stand = Stand(near=10.0, until=20.0, pace=math.log(2))
    assert stand.epochs(0.0) == pytest.approx(40.0)
    assert stand.epochs(3.0) == pytest.approx(40.0 * 8)
    assert math.isfinite(stand.epochs(1e9))


def test_a_run_that_began_where_it_stands_has_no_pace() -> None:
    reports = [Report(float(e), 1.5, 30.0) for e in range(1, 31)]
    record = TrialRecord("t", Allocation(1, 64), {}, 0, reports, Ended(EndCause.STOPPED))
    found = surface(record)
    assert found.predict(64, 40).mid == pytest.approx(1.5, abs=0.05)
    assert found.predict(64, 40).high >= 1.5

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.decision import Finished, Stop, StopCause
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.turned import LATE, LATER, turned
from tests.core.drive import goal

Curve = Callable[[float], float]


def told(curve: Curve, epochs: int, noise: float = 0.0, seed: int = 0) -> list[tuple[float, float]]:
    """Returns epoch and gap of each evaluation."""
    error = np.random.default_rng(seed).normal(0.0, 1.0, epochs)
    return [(k + 1.0, curve(k + 1.0) + noise * error[k]) for k in range(epochs)]


def fallen(epoch: float) -> float:
    """Falls ever slower, and never ends."""
    return 0.2 + 1 / math.sqrt(epoch)


def overfitted(epoch: float) -> float:
    """Is least at epoch 16, and rises slowly."""
    return 0.2 + 0.4 * math.log(epoch / 16) ** 2 / (1 + epoch / 64)


def stepped(epoch: float) -> float:
    """Stands still until its learning rate falls."""
    return 0.3 + 0.7 * math.exp(-epoch / 4) - 0.2 * (epoch > 150)


def restarted(epoch: float) -> float:
    """Gets worse whenever its learning rate restarts, after twice as many epochs each time."""
    begun = 2.0 ** math.floor(math.log2(epoch / 10 + 1))
    part = (epoch / 10 + 1) / begun - 1
    return 0.2 + (1 - 0.5 * part) / begun


@given(
    st.sampled_from([fallen, stepped, restarted]),
    st.integers(0, 300),
    st.sampled_from([0.0, 0.001, 0.01]),
    st.integers(0, 999),
)
def test_a_run_that_gets_better_stands_still_or_restarts_has_not_turned(
    curve: Curve, epochs: int, noise: float, seed: int
) -> None:
    assert turned(told(curve, epochs, noise, seed)) is None


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.004])
def test_a_run_that_overfits_turns_once_four_times_the_epochs_are_made(noise: float) -> None:
    found = [turned(told(overfitted, epochs, noise)) for epochs in range(300)]
    first = next(k for k, since in enumerate(found) if since is not None)
    assert LATE * 12 <= first <= 100
    assert all(since is not None and 12 <= since <= 20 for since in found[first:])


def test_few_evaluations_tell_nothing() -> None:
    few = told(overfitted, 200)[:: 200 // LATER]
    assert turned(few[:LATER]) is None


def test_steps_of_the_values_count_as_their_noise() -> None:
    """One sample more is told wrong than at the best evaluation."""
    rounded = [(epoch, 0.1 if epoch in {5, 6, 7} else 0.11) for epoch, _ in told(fallen, 60)]
    assert turned([(1.0, 0.2), *rounded[1:]]) is None


def test_a_run_at_the_target_that_breaks_another_bound_has_not_turned() -> None:
    assert turned([(epoch, max(gap - 0.25, 0.0)) for epoch, gap in told(overfitted, 200)]) is None


def test_a_run_that_has_turned_is_stopped_and_its_cell_is_not_run_for_ever() -> None:
    limits = replace(goal(target=0.1), mode="min")
    session = Session(Space((1,), (32,)), limits, clock=lambda: 0.0)
    for trial in ("a", "b", "c", "d"):
        if isinstance(answer := session.ask(trial), Finished):
            break
        for epoch in range(1, 400):
            session.tell(trial, Report(float(epoch), overfitted(epoch), 1.0))
            if isinstance(decision := session.decide(trial), Stop):
                break
        assert isinstance(decision, Stop)
        assert decision.cause is StopCause.EPOCHS
        assert decision.why.startswith("accuracy has got worse since epoch 16: 0.2 there, ")
        assert epoch < 100
        session.tell(trial, Ended(EndCause.STOPPED, decision.why))
    assert isinstance(answer, Finished)

"""Laws of sweeps that rest on a basis from their first ended trial on."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core import archive
from raycosttune.core.abilities import Abilities
from raycosttune.core.decision import Continue, Finished
from raycosttune.core.observation import EndCause
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from tests.core.test_basis import OPEN, SPACE, ended, restored, sweep

SMALL = settings(max_examples=40)


@contextmanager
def from_ended(fewest: float) -> Iterator[None]:
    """Has sweeps rest on what they knew from so many ended trials on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "FEWEST", fewest)
        yield


FURTHER = st.lists(
    st.tuples(
        st.sampled_from((*SPACE.cells, OPEN, OPEN)),
        st.sampled_from((0.98, 1.0, 1.02, 1.3)),
        st.sampled_from((2.0, 2.0, 4.0, None)),
        st.sampled_from((0.1, 0.1, 0.2)),
        st.booleans(),
    ),
    max_size=6,
)
Further = list[tuple[Allocation, float, float | None, float, bool]]


def grown(further: Further, *, profiles: bool) -> Session:
    """Returns a session that looked after each further run, ended or not, what to weigh by."""
    made = sweep(40, abilities=Abilities(profile=profiles))
    for k, (cell, pace, epochs, lr, is_live) in enumerate(further):
        assert made._moments.weighed.known.tally is made.known.tally
        cause = EndCause.REACHED if epochs is None else EndCause.STOPPED
        run = ended(f"u{k}", cell, pace=pace, epochs=epochs, lr=lr, cause=cause)
        made.adopt(replace(run, ended=None) if is_live else run)
    return made


@SMALL
@given(FURTHER, st.booleans())
def test_a_restored_sweep_answers_as_the_unbroken_one(further: Further, profiles: bool) -> None:
    with from_ended(1):
        unbroken = grown(further, profiles=profiles)
        again = restored(unbroken)
        for name in unbroken.records:
            assert again.decide(name) == unbroken.decide(name)
        assert again.ask("next") == unbroken.ask("next")
        assert again.state() == unbroken.state()


@SMALL
@given(FURTHER, st.booleans())
def test_what_ends_something_and_what_is_told_rest_on_everything(
    further: Further,
    profiles: bool,
) -> None:
    with from_ended(1):
        some = grown(further, profiles=profiles)
        told = {name: some.decide(name) for name in some.records}
        plan, spent, answer = some.plan(), some.spent, some.ask("next")
    with from_ended(math.inf):
        every = grown(further, profiles=profiles)
        for name, decision in told.items():
            assert isinstance(decision, Continue) or decision == every.decide(name)
        assert plan == every.plan()
        assert spent == every.spent
        expected = every.ask("next")
    if isinstance(answer, Finished):
        assert answer == expected

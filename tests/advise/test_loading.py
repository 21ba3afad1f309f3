from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import exposed_loading_seconds, loaders_to_hide

SECONDS = st.floats(1e-6, 1e3)


@given(SECONDS, SECONDS)
def test_a_step_waits_for_the_slower_of_loading_and_compute(load: float, compute: float) -> None:
    behind = exposed_loading_seconds(load, compute, in_background=True)
    assert abs(compute + behind - max(load, compute)) <= 1e-9 * max(load, compute)
    assert exposed_loading_seconds(load, compute, in_background=False) == load


@given(SECONDS, SECONDS, st.integers(1, 8))
def test_so_many_loaders_hide_it_and_one_fewer_does_not(
    load: float, compute: float, loaders: int
) -> None:
    needed = loaders_to_hide(load, compute, loaders)
    assert needed is not None
    work = load * loaders
    assert work / needed <= compute * (1 + 1e-9)
    assert needed == 1 or work / (needed - 1) > compute * (1 - 1e-9)


def test_nothing_to_load_and_nothing_to_hide_behind() -> None:
    assert loaders_to_hide(0, 0) == 1
    assert loaders_to_hide(0.1, 0) is None

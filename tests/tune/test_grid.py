from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune

from raycosttune.errors import InvalidSpaceError
from raycosttune.tune.grid import MOST_VALUES, read_grid


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (tune.choice([4, 1, 2, 2]), (1, 2, 4)),
        (tune.choice([np.int64(8), np.int64(16)]), (8, 16)),
        (tune.randint(1, 5), (1, 2, 3, 4)),
        (tune.qrandint(8, 32, 8), (8, 16, 24, 32)),
        (tune.qrandint(1, 4, 1), (1, 2, 3)),
        (tune.lograndint(1, 4), (1, 2, 3)),
        (tune.qlograndint(16, 64, 16), (16, 32, 48, 64)),
        (7, (7,)),
        (np.int64(7), (7,)),
    ],
)
def test_a_finite_domain_lists_its_values(domain: object, values: tuple[int, ...]) -> None:
    assert read_grid("num_workers", domain) == values


@given(st.integers(1, 10**6), st.integers(65, 10**7), st.booleans())
def test_a_large_range_keeps_its_ends_and_few_values(low: int, size: int, is_log: bool) -> None:
    domain = (tune.lograndint if is_log else tune.randint)(low, low + size)
    grid = read_grid("batch_size", domain)
    assert (grid[0], grid[-1]) == (low, low + size - 1)
    assert len(grid) <= MOST_VALUES
    assert all(low <= value < low + size for value in grid)


@given(st.integers(1, 100), st.integers(0, 500), st.integers(2, 9))
def test_every_sampled_value_is_in_the_grid(low: int, size: int, step: int) -> None:
    domain = tune.qrandint(low * step, (low + size % 60) * step, step)
    sampled = domain.sample(size=20) if size % 60 else [domain.sample()]
    assert set(map(int, np.ravel(sampled))) <= set(read_grid("batch_size", domain))


@pytest.mark.parametrize(
    "domain",
    [
        tune.uniform(1, 8),
        tune.loguniform(1, 8),
        tune.sample_from(lambda _: 4),
        tune.choice([1, 2.5]),
        tune.choice(["two"]),
        tune.choice([True]),
        tune.choice([0, 1]),
        tune.choice([]),
        tune.randint(3, 3),
        tune.qrandint(3, 4, 8),
        tune.qrandint(32, 64, 0),
        tune.qrandint(32, 64, 0.5),  # type: ignore[arg-type]  # no step of whole numbers
        tune.randint(1, 10**400),
        tune.choice([10**30]),
        None,
        "4",
        2.0,
    ],
)
def test_what_is_no_finite_grid_is_refused_by_name(domain: Any) -> None:
    with pytest.raises(InvalidSpaceError, match=r'"num_workers" must .* Write tune\.choice'):
        read_grid("num_workers", domain)

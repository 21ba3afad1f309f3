import logging

import pytest

from raycosttune.core.space import Space
from raycosttune.tune.fitted import MANY_CELLS, warn_of_size


@pytest.mark.parametrize("workers", [MANY_CELLS // 50, MANY_CELLS // 50 + 1])
def test_a_space_that_needs_much_memory_is_told(
    caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    space = Space(tuple(range(1, workers + 1)), tuple(range(1000, 1050)), divisible=False)
    with caplog.at_level(logging.WARNING):
        warn_of_size(space)
    said = "the search space has 5050 cells: the search needs some 1.4 GB"
    assert [message.startswith(said) for message in caplog.messages] == [True] * (workers > 100)

from pathlib import Path

import pytest

from tests.train.jobs import TRUE_NOISE_SCALE, measure_noise
from tests.train.world import run_world

UNEVEN = ((15, 6, 3), (3, 3, 18), (0, 12, 12))


def measure_all(cases: list[tuple[tuple[tuple[int, ...], ...], int, int]]) -> list[float | None]:
    return [measure_noise(*case) for case in cases]


@pytest.mark.slow
def test_the_noise_scale_is_found_from_uneven_shares(tmp_path: Path) -> None:
    cases = [(UNEVEN, 1, 1), (UNEVEN, 2, 1), (UNEVEN, 1, 2)]
    told = run_world(3, measure_all, cases, store=tmp_path / "store")
    assert told[0] == told[1] == told[2]
    assert told[0] == pytest.approx([TRUE_NOISE_SCALE] * 3, rel=0.3)


def test_one_worker_finds_it_from_parts_of_a_step_or_from_steps_in_a_row() -> None:
    script = ((24,),)
    for accumulate, window in ((1, 1), (2, 1), (3, 1), (1, 2)):
        measured = measure_noise(script, accumulate, window)
        assert measured == pytest.approx(TRUE_NOISE_SCALE, rel=0.35), (accumulate, window)

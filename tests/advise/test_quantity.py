import math
from collections.abc import Callable

import numpy as np
import pytest

from raycosttune import RayCostTuneError
from raycosttune.advise import (
    Link,
    amdahl_speedup,
    efficiency,
    largest_overhead_ratio,
    parameter_servers,
    ring_seconds,
    workers_for_speedup,
)

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: efficiency(0, 0.1), "workers must be a whole number from 1 to 10**12, got 0"),
        (lambda: efficiency(2.0, 0.1), "workers must be a whole number"),  # type: ignore[arg-type]
        (lambda: efficiency(workers=True, overhead_ratio=0.1), "workers must be a whole number"),
        (lambda: efficiency(10**13, 0.1), "workers must be a whole number"),
        (lambda: efficiency(2, -0.1), "overhead_ratio must be a finite number of at least 0"),
        (lambda: efficiency(2, NAN), "overhead_ratio must be a finite number of at least 0"),
        (lambda: efficiency(2, INF), "overhead_ratio must be a finite number of at least 0"),
        (lambda: efficiency(2, "0.1"), "got '0.1'"),  # type: ignore[arg-type]
        (lambda: efficiency(2, None), "got None"),  # type: ignore[arg-type]
        (lambda: workers_for_speedup(0, 0.1), "speedup_wanted must be a finite number above 0"),
        (lambda: largest_overhead_ratio(2, 1.1), "least_efficiency must be a number from 0 to 1"),
        (lambda: amdahl_speedup(2, NAN), "serial_part must be a number from 0 to 1"),
        (lambda: parameter_servers(1e6, 2, 0, 1.0), "bandwidth_bytes_per_second must be a finite"),
        (lambda: Link(0), "Link.bytes_per_second must be a finite number above 0, got 0"),
        (lambda: Link(1e9, -1), "Link.latency_seconds must be a finite number of at least 0"),
        (lambda: ring_seconds(-1, 2, Link(1)), "parameter_bytes must be a finite number"),
    ],
)
def test_bad_input_gives_one_clear_error(call: Callable[[], object], what: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is compared below
        call()
    assert isinstance(caught.value, RayCostTuneError)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    assert efficiency(np.int64(4), np.float32(0.5)) == efficiency(4, 0.5)  # type: ignore[arg-type]

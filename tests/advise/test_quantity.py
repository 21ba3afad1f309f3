import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raycosttune import RayCostTuneError, advise
from raycosttune.advise import (
    InvalidAdviceError,
    Link,
    MemoryLine,
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


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: advise.batch_to_hide(1.0, 5e-324), "sample_seconds must be so large"),
        (lambda: advise.loaders_to_hide(1.0, 5e-324), "compute_seconds must be so long"),
        (lambda: advise.loaders_to_hide(1e308, 1.0, 10**12), "compute_seconds must be so long"),
        (lambda: advise.server_loads([1.0], 10**12), "servers must be at most 1000000"),
        (lambda: parameter_servers(1e308, 2, 5e-324, 5e-324), "let 10**12 servers do"),
        (lambda: advise.fit_memory_line({1: 1e308, 2: 1e308}), "from 0 to 1e+100"),
        (lambda: advise.fit_compute_line({1: 5e-324, 2: 1e308}), "from 1e-100 to 1e+100"),
        (lambda: advise.fit_law("ring", {1: 5e-324, 2: 1e308}), "from 1e-100 to 1e+100"),
        (lambda: advise.step_seconds(1, 1, None), "overlap must be a number"),  # type: ignore[arg-type]
        (lambda: advise.step_seconds(1, 1, 10**400), "overlap must be a number"),
        (lambda: efficiency(10**5000, 0.1), "got a int too long to print"),
        (lambda: efficiency("x" * 1000, 0.1), "xxx..."),  # type: ignore[arg-type]
    ],
)
def test_a_number_out_of_all_bounds_is_refused_by_its_name(
    call: Callable[[], object], what: str
) -> None:
    with pytest.raises(InvalidAdviceError, match=re.escape(what)) as caught:
        call()

    assert len(str(caught.value)) < 400


def test_extremes_that_have_an_answer_get_it() -> None:
    line = MemoryLine(1e6, 1e3)

    assert advise.batch_to_hide(0.0, 5e-324, fixed_seconds=1e308) == 1
    assert advise.largest_batch(1e30, line) == 10**12  # not after ages
    assert advise.largest_batch(1e308, MemoryLine(0.0, 5e-324)) == 10**12
    assert advise.node_hours_factor(4, 1e308) == 4.0
    assert parameter_servers(5e-324, 1, 1e308, 1e308, shard_bytes=[1e308, 1e308]) == 1
    assert parameter_servers(1e6, 2, 1e308, 1e308) == 1


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda it: ring_seconds(1.0, 2, it), "link must be of type Link"),
        (lambda it: advise.tree_seconds(1.0, 2, it), "link must be of type Link"),
        (lambda it: advise.largest_batch(1.0, it), "line must be of type MemoryLine"),
        (lambda it: advise.workspace_bytes(1.0, it, 1), "line must be of type MemoryLine"),
        (lambda it: advise.memory_terms(it, 1), "feature_elements must be of type Iterable"),
        (advise.fit_memory_line, "peak_bytes must be of type Mapping"),
        (advise.fit_compute_line, "compute_seconds must be of type Mapping"),
        (lambda it: advise.fit_law("ring", it), "step_seconds must be of type Mapping"),
        (lambda it: advise.fit_law(it, {1: 1.0, 2: 1.0}), "a law must be of type str"),
        (advise.rank_laws, "step_seconds must be of type Mapping"),
        (lambda it: advise.choose_algorithms(it, 1.0), "costs must be of type Mapping"),
        (lambda it: advise.choose_algorithms({"a": it}, 1.0), "the costs of a must be of type"),
        (lambda it: advise.choose_algorithms({"a": {"b": it}}, 1.0), "the cost of b for a must"),
        (lambda it: advise.choose_batch(it, 1.0, MemoryLine(1.0, 1.0)), "costs must be of type"),
        (lambda it: advise.server_loads(it, 1), "shard_bytes must be of type Iterable"),
        (lambda it: parameter_servers(1.0, 1, 1.0, 1.0, it), "shard_bytes must be of type"),
        (lambda it: advise.guide(it, advise.Cluster(1)), "profile must be of type JobProfile"),
        (lambda it: advise.suggest_sweep(it, advise.Cluster(1)), "profile must be of type"),
        (lambda it: advise.Cluster(1, link=it), "Cluster.link must be of type Link"),
        (lambda it: advise.JobProfile(1, 1, 1.0, it), "JobProfile.compute must be of type"),
    ],
)
def test_a_number_in_place_of_something_else_is_refused(
    call: Callable[[Any], object], what: str
) -> None:
    with pytest.raises(InvalidAdviceError, match=re.escape(what)):
        call(3.0)

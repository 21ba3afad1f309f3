import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    Cluster,
    ComputeLine,
    InvalidAdviceError,
    JobProfile,
    Pair,
    profile_from_data,
    profile_to_data,
    ring_seconds,
    speedup,
)
from tests.advise.told import CLUSTER, PROFILE

AMOUNTS = st.floats(0, 10)
DATA = profile_to_data(PROFILE)


@given(AMOUNTS, st.floats(1e-4, 1), AMOUNTS, st.floats(1, 2), st.integers(1, 512))
def test_two_workers_take_what_was_measured_of_two(
    fixed: float, sample: float, more: float, crowding: float, half: int
) -> None:
    line = ComputeLine(fixed, sample)
    profile = JobProfile(
        batch_size=2 * half,
        samples=1000,
        parameter_bytes=1e6,
        compute=line,
        pair=Pair(
            half, crowding * line.seconds(half) + more, crowding * line.seconds(half), 1.0, 0.0
        ),
    )
    measured = crowding * line.seconds(half) + more
    assert profile.crowding == pytest.approx(crowding)
    assert profile.step_seconds(2, 2 * half, Cluster(2)) == pytest.approx(measured)


def test_what_a_profile_implies_worked_by_hand() -> None:
    assert PROFILE.compute_seconds == pytest.approx(0.74)
    assert PROFILE.pair_seconds == pytest.approx(0.08)
    assert PROFILE.hidden_part == pytest.approx(0.2)
    assert PROFILE.overhead_ratio == pytest.approx(0.18 / 0.64)
    link = PROFILE.link
    assert link is not None
    assert link.latency_seconds == pytest.approx(0.01)
    assert ring_seconds(10e6, 2, link) == pytest.approx(0.1)


def test_the_overhead_ratio_is_that_of_the_lemma_at_two_workers() -> None:
    ratio = PROFILE.overhead_ratio
    assert ratio is not None
    # One worker's step has the fixed cost; the lemma's has the exchange of two as well.
    assert (0.74 + 0.08) / speedup(2, ratio) == pytest.approx(0.1 + 0.32 + 0.08)


def test_a_step_across_nodes_takes_the_link_between_them() -> None:
    near = PROFILE.step_seconds(4, 64, CLUSTER)
    assert near == pytest.approx(0.1 + 0.16 + 0.08 * 1.5)
    far = PROFILE.step_seconds(8, 64, CLUSTER)
    assert far == pytest.approx(0.1 + 0.08 + 0.08 * 1.5 + 2 * (1e-4 + 5e6 / 1e9))
    with pytest.raises(InvalidAdviceError, match="time two workers on two nodes too"):
        PROFILE.step_seconds(8, 64, replace(CLUSTER, link=None))


def test_workers_on_one_node_crowd_each_other() -> None:
    crowded = replace(PROFILE, pair=Pair(32, 0.92, 0.84, 0.1, 0.02))
    assert crowded.crowding == pytest.approx(2)
    assert crowded.pair_seconds == pytest.approx(0.08)
    assert crowded.step_seconds(1, 64, CLUSTER) == pytest.approx(0.74)
    assert crowded.step_seconds(4, 64, CLUSTER) == pytest.approx(2 * 0.26 + 0.08 * 1.5)
    apart = Cluster(4, workers_per_node=1, link=CLUSTER.link)
    assert crowded.step_seconds(4, 64, apart) == pytest.approx(0.26 + 1.5 * (2e-4 + 0.01))


def test_loading_adds_what_is_not_hidden() -> None:
    slow = replace(PROFILE, loading_seconds=1.0)
    assert slow.step_seconds(1, 64, CLUSTER) == pytest.approx(1.0)
    alone = replace(slow, loaders=0)
    assert alone.step_seconds(1, 64, CLUSTER) == pytest.approx(1.74)
    assert alone.step_seconds(2, 64, CLUSTER) == pytest.approx(0.5 + 0.5)


def test_what_was_not_measured_is_not_told() -> None:
    bare = replace(PROFILE, pair=None, memory=None)
    assert bare.pair_seconds is None
    assert bare.overhead_ratio is None
    assert bare.hidden_part is None
    assert bare.link is None
    assert bare.step_seconds(2, 64, CLUSTER) == pytest.approx(0.42)
    still = replace(PROFILE, pair=Pair(32, 0.5, 0.42, 0.01, 0.02))
    assert still.link is None  # it took no longer than a message of one number


@pytest.mark.parametrize(
    "profile",
    [
        PROFILE,
        replace(PROFILE, pair=None, memory=None),
        replace(PROFILE, samples=None, made_up=(3, 8, 8)),
        replace(PROFILE, samples=None, made_up=()),
    ],
)
def test_a_profile_is_read_back_from_json(profile: JobProfile) -> None:
    assert profile_from_data(json.loads(json.dumps(profile_to_data(profile)))) == profile


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InvalidAdviceError, match=r"JobProfile\.batch_size"):
        replace(PROFILE, batch_size=0)
    with pytest.raises(InvalidAdviceError, match=r"JobProfile\.loading_seconds"):
        replace(PROFILE, loading_seconds=-1.0)
    with pytest.raises(InvalidAdviceError, match="the compute of a step"):
        replace(PROFILE, compute=ComputeLine(0, 0))
    with pytest.raises(InvalidAdviceError, match=r"Cluster\.workers_per_node"):
        Cluster(4, workers_per_node=-1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            {"pair": {**DATA["pair"], "step_seconds": math.nan}},
            "Pair.step_seconds must be a finite",
        ),
        (
            {"pair": {**DATA["pair"], "latency_seconds": "x"}},
            "Pair.latency_seconds must be a finite",
        ),
        ({"pair": {**DATA["pair"], "samples": 0}}, "Pair.samples must be a whole number"),
        ({"pair": {"samples": 1}}, "what profile_to_data writes: .*missing 4 required"),
        ({"pair": 3}, "what profile_to_data writes: "),
        (
            {"memory": {**DATA["memory"], "largest_batch": -3}},
            "Memory.largest_batch must be a whole",
        ),
        (
            {"memory": {**DATA["memory"], "available_bytes": math.inf}},
            "Memory.available_bytes must be",
        ),
        ({"memory": {"available_bytes": 1.0}}, "'line' is missing. Profile the job again"),
        ({"loaders": -1}, "JobProfile.loaders must be a finite number of at least 0"),
        ({"compute": None}, "what profile_to_data writes: "),
        ({"samples": 2.5}, "JobProfile.samples must be a whole number"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
    ],
)
def test_a_damaged_profile_is_told_by_what_is_wrong_in_it(
    change: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidAdviceError, match=what):
        profile_from_data(DATA | change)


def test_what_is_no_profile_is_told() -> None:
    with pytest.raises(InvalidAdviceError, match="a profile must be of type Mapping, got None"):
        profile_from_data(None)  # type: ignore[arg-type]

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    Cluster,
    ComputeLine,
    JobProfile,
    Memory,
    MemoryLine,
    Pair,
    suggest_sweep,
)
from raycosttune.core.space import Space
from tests.advise.told import CLUSTER, PROFILE

PROFILES = st.builds(
    JobProfile,
    batch_size=st.integers(1, 512),
    samples=st.none() | st.integers(1, 10**5),
    parameter_bytes=st.floats(0, 1e9),
    compute=st.builds(ComputeLine, st.floats(0.001, 1), st.floats(0, 1)),
    pair=st.none() | st.builds(Pair, st.integers(1, 256), *(st.floats(0, 10),) * 4),
    memory=st.none()
    | st.builds(
        Memory,
        st.just(MemoryLine(1e9, 1e7)),
        available_bytes=st.just(3e9),
        largest_batch=st.integers(1, 1000),
    ),
)
CLUSTERS = st.builds(Cluster, st.integers(1, 64), st.none() | st.integers(1, 8))


@given(PROFILES, CLUSTERS)
def test_what_is_suggested_is_a_legal_space(profile: JobProfile, cluster: Cluster) -> None:
    sweep = suggest_sweep(profile, cluster)
    space = Space(
        sweep.workers,
        sweep.batches,
        workers_per_node=cluster.workers_per_node,
        divisible=True,
        max_local_batch=sweep.max_local_batch,
        max_workers=cluster.workers,
    )
    assert {cell.batch_size for cell in space.cells} == set(sweep.batches)
    assert {cell.workers for cell in space.cells} == set(sweep.workers)
    assert max(sweep.batches) <= max(16 * profile.batch_size, cluster.workers)


def test_a_case_worked_by_hand() -> None:
    sweep = suggest_sweep(PROFILE, CLUSTER)
    assert sweep.workers == (1, 2, 4, 8)
    # An epoch of 6400 samples has 8 steps of 800.
    assert sweep.batches == (16, 32, 64, 128, 256, 512)
    assert sweep.max_local_batch == 200
    assert sweep.why == ("batches of at most 800: an epoch has 6400 samples",)


def test_workers_that_bring_nothing_are_left_out_and_said_so() -> None:
    slow = replace(PROFILE, pair=Pair(32, 2.62, 0.42, 2.5, 0.0), memory=None)
    sweep = suggest_sweep(slow, replace(CLUSTER, workers=4))
    assert sweep.workers == (1, 2)
    (line,) = (line for line in sweep.why if line.startswith("not 4 workers: a step of 512 takes"))
    assert line.endswith(", which gains too little")
    slower = replace(slow, pair=Pair(32, 3.02, 0.42, 2.6, 0.0))
    said = suggest_sweep(slower, CLUSTER).why
    assert "not 2 workers: a step of 512 takes 5.26 s, on 1 5.22 s" in said


def test_workers_that_outweigh_their_crowding_stay() -> None:
    crowded = replace(PROFILE, pair=Pair(32, 1.16, 1.08, 0.1, 0.02), memory=None)
    sweep = suggest_sweep(crowded, replace(CLUSTER, workers_per_node=None))
    assert crowded.crowding > 2.5
    assert sweep.workers == (1, 4, 8)
    assert sum(line.startswith("not 2 workers") for line in sweep.why) == 1


def test_workers_stay_where_memory_needs_them() -> None:
    memory = Memory(MemoryLine(1e9, 1e7), available_bytes=3e9, largest_batch=40)
    slow = replace(PROFILE, pair=Pair(32, 30.0, 0.42, 25.0, 0.0), memory=memory)
    sweep = suggest_sweep(slow, CLUSTER)
    assert sweep.workers == (1, 8)
    assert sweep.batches[-1] == 256
    assert "batches of at most 320: 40 samples fit on each of 8 workers" in sweep.why


def test_one_node_is_the_limit_where_the_link_is_not_known() -> None:
    sweep = suggest_sweep(PROFILE, replace(CLUSTER, link=None))
    assert sweep.workers == (1, 2, 4)
    assert any("time two workers on two nodes too" in line for line in sweep.why)


def test_a_batch_that_does_not_fit_at_all_is_made_smaller() -> None:
    memory = Memory(MemoryLine(1e9, 1e7), available_bytes=3e9, largest_batch=2)
    sweep = suggest_sweep(replace(PROFILE, memory=memory), Cluster(2))
    assert sweep.batches == (4,)  # of two workers, each with what fits
    assert 2 in sweep.workers

from dataclasses import replace

import pytest

from raycosttune.advise import Cluster, ComputeLine, Pair, guide
from tests.advise.told import CLUSTER, PROFILE


def test_every_limit_is_told_with_its_numbers() -> None:
    limits = guide(PROFILE, CLUSTER).limits
    assert limits == {
        "compute": "740 ms a step of 64 on one worker: 100 ms at any batch, 10 ms a sample",
        "loading": "200 ms a batch alone; a step waits 1 ms for it: hidden",
        "sync": "two workers' exchange adds 80 ms to a step; of 10 MB alone it takes 100 ms, "
        "20% of it hidden; overhead ratio 0.281; on one machine each computes 1.00 times as long",
        "memory": "1 GB at any batch, 10 MB a sample: at most 200 samples a worker in 3 GB",
    }


def test_the_table_holds_each_number_of_workers() -> None:
    rows = guide(PROFILE, replace(CLUSTER, workers=6)).scaling
    assert [(row.workers, row.nodes) for row in rows] == [(1, 1), (2, 1), (4, 1), (6, 2)]
    for row in rows:
        assert row.speedup == pytest.approx(rows[0].step_seconds / row.step_seconds)
        assert row.efficiency == pytest.approx(row.speedup / row.workers)
        assert row.worker_hours == pytest.approx(row.workers * row.step_seconds * 100 / 3600)


def test_advice_names_workers_batch_bandwidth_and_servers() -> None:
    told = " ".join(guide(PROFILE, CLUSTER).advice)
    assert "up to 2 workers are 1.48 times as fast as one, at 1.35 times its worker-hours" in told
    assert "no number of workers is more than 4.56 times as fast as one at batch 64" in told
    assert "and at most 5 of them keep an efficiency of 50%" in told
    assert "from batch 240 on, 8 workers compute" not in told
    assert "8 workers compute for as long as they exchange" in told
    assert (
        "no link gives 8 workers 80% efficiency at batch 64: their compute alone leaves 51%" in told
    )
    assert "parameter servers in place of a ring: 1 of 1 GB/s hides" in told
    apart = " ".join(guide(PROFILE, replace(CLUSTER, workers=4, link=None)).advice)
    assert "parameter servers in place of a ring: 3 of 125 MB/s each" in apart


def test_a_link_for_an_efficiency_leaves_the_compute_its_time() -> None:
    told = guide(PROFILE, replace(CLUSTER, workers=2)).advice
    # 0.74 s over 2 x 80 % are 0.4625 s, of which 0.42 s are compute: 10 MB in 42.5 ms.
    assert "for 80% efficiency 2 workers need a ring of 235 MB/s" in told


def test_crowded_workers_are_promised_no_efficiency_that_their_cores_rule_out() -> None:
    crowded = replace(PROFILE, pair=Pair(32, 1.16, 1.08, 0.1, 0.02))  # 2.57 times as long
    told = " ".join(guide(crowded, replace(CLUSTER, workers_per_node=None)).advice)
    assert "no number of workers is more than 2.29 times as fast as one" in told
    assert "and no number of them keeps an efficiency of 50%" in told
    assert "no link gives 8 workers 80% efficiency" in told
    assert "their compute alone leaves 20%" in told
    apart = " ".join(guide(crowded, replace(CLUSTER, workers_per_node=1)).advice)
    assert "at most 6 of them keep an efficiency of 50%" in apart
    assert "two workers on one machine" not in apart


def test_workers_of_which_no_number_is_faster_than_one_are_told_so() -> None:
    pair = Pair(32, step_seconds=3.0, compute_seconds=1.08, exchange_seconds=2.0, latency_seconds=0)
    told = guide(replace(PROFILE, pair=pair), replace(CLUSTER, workers_per_node=None)).advice
    assert "by Lemma 3.1 no number of workers is faster than one at batch 64" in told


def test_loading_that_is_not_hidden_is_told_with_the_loaders_that_hide_it() -> None:
    slow = replace(PROFILE, loading_seconds=1.0, waiting_seconds=1.0, loaders=0)
    found = guide(slow, CLUSTER)
    assert found.limits["loading"].endswith("waits 1 s for it: not hidden")
    assert "load in the background: num_workers=2 in the DataLoader would hide it" in found.advice


def test_without_a_pair_nothing_is_said_of_the_exchange() -> None:
    found = guide(replace(PROFILE, pair=None, memory=None), Cluster(4))
    assert set(found.limits) == {"compute", "loading"}
    assert len(found.advice) == 1


def test_steps_that_do_not_grow_with_the_batch_have_no_lemma() -> None:
    flat = replace(PROFILE, compute=ComputeLine(0.1, 0.0), pair=Pair(32, 0.2, 0.1, 0.1, 0.0))
    found = guide(replace(flat, loading_seconds=0.0), CLUSTER)
    assert found.advice[0] == "batch 64: one worker is best, 2 are 0.50 times as fast"
    assert not any("Lemma" in line for line in found.advice)


def test_the_table_ends_where_the_link_is_not_known() -> None:
    assert guide(PROFILE, replace(CLUSTER, link=None)).scaling[-1].workers == 4


def test_workers_that_cost_more_than_twice_what_they_bring_are_told_with_their_price() -> None:
    crowded = replace(PROFILE, pair=Pair(32, 1.16, 1.08, 0.1, 0.02))
    told = guide(crowded, replace(CLUSTER, workers_per_node=None)).advice
    assert told[0] == (
        "batch 64: one worker is the cheapest; 8 are 1.23 times as fast, at 6.52 times its "
        "worker-hours"
    )
    assert told[1].startswith("two workers on one machine each compute 2.57 times as long")


def test_an_exchange_that_adds_nothing_sets_no_limit() -> None:
    free = replace(PROFILE, compute=ComputeLine(0.0, 0.01), pair=Pair(32, 0.3, 0.32, 0.1, 0.0))
    assert not any("Lemma" in line for line in guide(free, CLUSTER).advice)


def test_a_batch_that_does_not_fit_is_told_before_all_else() -> None:
    assert PROFILE.memory is not None
    memory = replace(PROFILE.memory, largest_batch=20)
    found = guide(replace(PROFILE, memory=memory), CLUSTER)
    assert [row.fits for row in found.scaling] == [False, False, True, True]
    assert found.advice[0] == "batch 64: it takes the memory of 4 workers"
    few = guide(replace(PROFILE, memory=memory), replace(CLUSTER, workers=2))
    assert few.advice == (
        "batch 64: it does not fit on 2 workers. Take a smaller one, or accumulate gradients",
    )


def test_what_made_up_samples_cannot_tell_is_not_known() -> None:
    found = guide(replace(PROFILE, samples=None, made_up=(3, 32, 32)), CLUSTER)
    assert found.limits["loading"] == "not known, as samples of 3x32x32 were made up"
    assert {row.worker_hours for row in found.scaling} == {None}
    assert not any("num_workers" in line for line in found.advice)

from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.share import split_block
from raycosttune.train.batch_sampler import SharedBatchSampler, shuffled
from raycosttune.train.step import Step

shares = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(lambda s: sum(s) > 0)


@given(
    st.integers(1, 40),
    shares,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
)
def test_the_workers_together_have_every_sample_of_each_batch_once(
    length: int, split: list[int], parts: int, drop_last: bool, shuffle: bool, least: int
) -> None:
    batch = sum(split)
    samplers = [
        SharedBatchSampler(
            order=shuffled(length, 7, shuffle=shuffle),
            length=length,
            batch_size=batch,
            rank=rank,
            shares_at=lambda _: tuple(split),
            drop_last=drop_last,
            parts=parts,
            least_rows=lambda: least,
        )
        for rank in range(len(split))
    ]
    drawn = [list(sampler) for sampler in samplers]
    steps: list[list[Step]] = [list(sampler.steps) for sampler in samplers]
    assert {len(rows) for rows in drawn} == {len(samplers[0])}
    order = list(shuffled(length, 7, shuffle=shuffle)(0))
    count = length // batch if drop_last else -(-length // batch)
    for k in range(count):
        block = order[k * batch : (k + 1) * batch]
        counted: list[int] = []
        for rank in range(len(split)):
            for part in range(parts):
                step, rows = steps[rank][k * parts + part], drawn[rank][k * parts + part]
                assert len(rows) >= max(step.samples, least)
                assert set(rows) <= set(block)
                assert step.total == len(block)
                assert step.share == split_block(tuple(split), len(block))[rank]
                assert step.is_full == (len(block) == batch)
                counted += rows[: step.samples]
        assert counted == block
        weights = sum(
            steps[r][k * parts + p].weight for r in range(len(split)) for p in range(parts)
        )
        assert abs(weights - parts) < 1e-12


def test_each_epoch_has_an_order_of_its_own_that_all_workers_know() -> None:
    order = shuffled(50, 3, shuffle=True)
    assert order(0) == shuffled(50, 3, shuffle=True)(0)
    assert sorted(order(1)) == list(range(50))
    assert order(0) != order(1)
    assert list(shuffled(3, 0, shuffle=False)(5)) == [0, 1, 2]


def test_other_shares_hold_from_the_step_on_that_they_were_planned_for() -> None:
    sampler = SharedBatchSampler(
        order=shuffled(12, 0, shuffle=False),
        length=12,
        batch_size=4,
        rank=0,
        shares_at=lambda step: (2, 2) if step < 4 else (3, 1),
    )
    assert [len(rows) for rows in sampler] == [2, 2, 2]
    assert [len(rows) for rows in sampler] == [2, 3, 3]
    assert sampler.position == 6

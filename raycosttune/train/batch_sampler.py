"""Batches that all workers share, and this worker's part of each."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import torch

from raycosttune.core.share import equal_shares, split_block
from raycosttune.train.step import Step

Order = Callable[[int], Sequence[int]]


class SharedBatchSampler(torch.utils.data.Sampler[list[int]]):
    """Yields the indices of this worker's part of each batch.

    All workers go through the same samples in the same order, cut into the same batches; a
    worker takes its slice of each. So every worker has the same number of steps whatever the
    shares, and together they see what a single process would.

    Args:
        order: Indices of an epoch, the same on all workers.
        length: How many these are.
        batch_size: Samples of a step over all workers.
        rank: This worker.
        shares_at: Shares of the workers from the step of that number on, over all epochs.
        drop_last: Whether to leave out a last batch that is smaller.
        parts: Parts of a step, where the loop accumulates gradients.
        least_rows: Samples that a part must have at least.
    """

    def __init__(
        self,
        *,
        order: Order,
        length: int,
        batch_size: int,
        rank: int,
        shares_at: Callable[[int], tuple[int, ...]],
        drop_last: bool = False,
        parts: int = 1,
        least_rows: Callable[[], int] = lambda: 1,
    ) -> None:
        self._order = order
        self._length = length
        self._batch_size = batch_size
        self._rank = rank
        self._shares_at = shares_at
        self._drop_last = drop_last
        self._parts = parts
        self._least_rows = least_rows
        self.epoch = 0
        self.position = 0
        self.steps: deque[Step] = deque()

    def __len__(self) -> int:
        """Returns the parts of an epoch."""
        whole, rest = divmod(self._length, self._batch_size)
        return self._parts * (whole + (rest > 0 and not self._drop_last))

    def __iter__(self) -> Iterator[list[int]]:
        """Yields the indices of each part, and puts what it is into `steps`."""
        self.steps.clear()
        order = self._order(self.epoch)
        for k in range(len(self) // self._parts):
            block = order[k * self._batch_size : (k + 1) * self._batch_size]
            shares = split_block(self._shares_at(self.position), len(block))
            self.position += 1
            begin = sum(shares[: self._rank])
            mine = list(block[begin : begin + shares[self._rank]])
            for part, count in enumerate(equal_shares(len(mine), self._parts)):
                rows, mine = mine[:count], mine[count:]
                self.steps.append(
                    Step(
                        samples=count,
                        total=len(block),
                        share=shares[self._rank],
                        workers=sum(share > 0 for share in shares),
                        is_full=len(block) == self._batch_size,
                        part=part,
                        parts=self._parts,
                    )
                )
                yield self._padded(rows, block)

    def _padded(self, rows: list[int], block: Sequence[int]) -> list[int]:
        """Returns at least as many rows as a model takes: none would have a loss of NaN."""
        rows = rows or [block[self._rank % len(block)]]
        return (rows * self._least_rows())[: max(len(rows), self._least_rows())]


def shuffled(length: int, seed: int, *, shuffle: bool) -> Order:
    """Returns the order of each epoch: another one each time, the same on all workers."""

    def order(epoch: int) -> Sequence[int]:
        if not shuffle:
            return range(length)
        generator = torch.Generator()
        generator.manual_seed(seed + epoch)
        permuted: list[int] = torch.randperm(length, generator=generator).tolist()
        return permuted

    return order

"""Batches pulled from streams, of which each worker has one of its own."""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from raycosttune.errors import InvalidLoaderError
from raycosttune.train.exchange import Exchange
from raycosttune.train.step import Step, StepClock


class PulledBatches:
    """Pulls as many samples a step as this worker's share allows.

    Workers tell one another how many they got. They go on until all streams have ended: one
    that ended early gets a sample of weight 0, so that every worker has the same steps.

    Args:
        samples: This worker's stream; each call of `iter` begins it anew.
        collate: Makes a batch of samples.
        batch_size: Samples of a step over all workers.
        exchange: Joins the workers.
        shares_at: Shares of the workers from the step of that number on.
        clock: Is told of the wait for other workers.
        least_rows: Samples that a batch must have at least.
    """

    def __init__(
        self,
        samples: Iterable[Any],
        *,
        collate: Callable[[list[Any]], Any],
        batch_size: int,
        exchange: Exchange,
        shares_at: Callable[[int], tuple[int, ...]],
        clock: StepClock,
        least_rows: Callable[[], int] = lambda: 1,
    ) -> None:
        self._samples = samples
        self._collate = collate
        self._batch_size = batch_size
        self._exchange = exchange
        self._shares_at = shares_at
        self._clock = clock
        self._least_rows = least_rows
        self.epoch = 0
        self.position = 0
        self.steps: deque[Step] = deque()

    def __len__(self) -> int:
        """Raises TypeError: nobody knows how long a stream is."""
        msg = "a stream of samples has no length: it is known only when it ends"
        raise TypeError(msg)

    def __iter__(self) -> Iterator[Any]:
        """Yields batches, and puts what each is into `steps`."""
        self.steps.clear()
        stream = iter(self._samples)
        spare: list[Any] = []
        rank = self._exchange.rank
        while True:
            shares = self._shares_at(self.position)
            mine = list(itertools.islice(stream, shares[rank] or (not spare)))
            counts = self._agree(len(mine))
            if not sum(counts):
                return
            if not spare and 0 in counts:
                msg = (
                    "each worker's stream must have a sample, got "
                    f"{counts} in the first step. Give each worker its own part of the data."
                )
                raise InvalidLoaderError(msg)
            spare = mine[:1] or spare
            self.position += 1
            self.steps.append(
                Step(
                    samples=len(mine),
                    total=sum(counts),
                    share=len(mine),
                    workers=sum(count > 0 for count in counts),
                    is_full=sum(counts) == self._batch_size,
                )
            )
            rows = mine or spare
            least = self._least_rows()
            yield self._collate((rows * least)[: max(len(rows), least)])

    def _agree(self, count: int) -> list[int]:
        began = time.perf_counter()
        counts = [int(row[0]) for row in self._exchange.gather([count])]
        self._clock.exclude(time.perf_counter() - began)
        return counts

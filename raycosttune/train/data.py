"""Loaders for training loops whose workers share each batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, default_collate

from raycosttune.core.value import read_count
from raycosttune.errors import InvalidLoaderError
from raycosttune.train import place
from raycosttune.train.batch_sampler import Order, SharedBatchSampler, shuffled
from raycosttune.train.counting import counted
from raycosttune.train.current import CURRENT
from raycosttune.train.exchange import Exchange, exchange
from raycosttune.train.loader import SharedLoader
from raycosttune.train.rebalancer import Rebalancer
from raycosttune.train.settings import installed
from raycosttune.train.step import StepClock
from raycosttune.train.stream import PulledBatches

OURS = ("batch_sampler", "drop_last", "sampler", "shuffle")


def prepare_data_loader(  # noqa: PLR0913 - all after dataset are named
    dataset: Any,  # noqa: ANN401 - PyTorch's data sets have no common type
    *,
    batch_size: int,
    shuffle: bool = True,
    sampler: Iterable[int] | None = None,
    seed: int = 0,
    drop_last: bool = False,
    accumulate: int = 1,
    count: Callable[[Any], Any] | None = None,
    move_to_device: bool = True,
    **options: Any,  # noqa: ANN401 - DataLoader's own
) -> SharedLoader:
    """Makes a loader whose batches all workers share.

    Every worker goes through the same batches of `batch_size` samples and takes its part of
    each: an equal one, or one that follows its speed where a `RebalanceCallback` is among the
    run's callbacks. What is learned is the same. Use it with a model from `prepare_model`.

    All workers call it, and iterate over it, together; iterating is an epoch. With an
    `IterableDataset` each worker pulls from its own stream as many samples as its share allows.

    Args:
        dataset: A PyTorch data set, the same on all workers if it has a length.
        batch_size: Global batch: samples of a step over all workers.
        shuffle: Whether each epoch has another order.
        sampler: Yields the indices of an epoch in place of `shuffle`; that of the first worker
            decides.
        seed: Seed of the order.
        drop_last: Whether to leave out a last batch that is smaller.
        accumulate: Parts in which a worker gets its share of a step. Divide the loss by it,
            and update the weights after so many batches; gradients are exchanged then only.
        count: Says how much a batch, as it is loaded, counts, where the loss isn't a mean over
            samples: how many tokens, say. Workers tell one another before each step.
        move_to_device: Whether tensors are moved to the worker's GPU, where it has one.
        **options: More for PyTorch's `DataLoader`, such as `num_workers`.

    Returns:
        The loader.

    Raises:
        InvalidLoaderError: If the data set or an argument is unusable.
        InvalidShareError: If the batch has fewer samples than there are workers, or does not
            fit into their memory.
    """
    _check(dataset, batch_size, accumulate, options)
    _check_count(count)
    joined = exchange()
    is_stream = isinstance(dataset, IterableDataset)
    length = 0 if is_stream else _length(dataset, sampler)
    _check_alike(
        joined,
        {
            "samples": length,
            "batch_size": batch_size,
            "seed": seed,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "accumulate": accumulate,
            "count": count is not None,
        },
    )
    if not is_stream:
        _check_length(length, batch_size if drop_last else 1)
    rebalancer = Rebalancer(batch_size, joined, installed().policy, installed().caps)
    rebalancer.load_first(place.earlier_state() if joined.rank == 0 else {})
    target = place.device() if move_to_device else None
    clock = StepClock(on_device=place.device() is not None)
    counting: Any = iter
    if count is not None:
        counting = partial(
            counted, count=count, exchange=joined, clock=clock, least_rows=_least_rows
        )
    if is_stream:
        _check_stream(accumulate, sampler)
        collate = options.pop("collate_fn", None) or default_collate
        samples: Any = DataLoader(dataset, batch_size=None, collate_fn=_unchanged, **options)
        pulled = PulledBatches(
            samples,
            collate=collate,
            batch_size=batch_size,
            exchange=joined,
            shares_at=rebalancer.plan.at,
            clock=clock,
            least_rows=_least_rows,
        )
        return SharedLoader(pulled, pulled, rebalancer, clock, target, counting)
    parts = SharedBatchSampler(
        order=_order(dataset, sampler, seed, joined, shuffle=shuffle),
        length=length,
        batch_size=batch_size,
        rank=joined.rank,
        shares_at=rebalancer.plan.at,
        drop_last=drop_last,
        parts=accumulate,
        least_rows=_least_rows,
    )
    batches: Any = DataLoader(dataset, batch_sampler=parts, **options)
    return SharedLoader(batches, parts, rebalancer, clock, target, counting)


def _check(dataset: object, batch_size: object, accumulate: object, options: Any) -> None:  # noqa: ANN401 - checked here
    if isinstance(dataset, SharedLoader):
        msg = "a loader must be prepared once, got one that was. Use it as it is."
        raise InvalidLoaderError(msg)
    if isinstance(dataset, DataLoader):
        msg = (
            "dataset must be a data set, got a DataLoader, whose batches can't be shared anew. "
            "Write prepare_data_loader(loader.dataset, batch_size=...)."
        )
        raise InvalidLoaderError(msg)
    if hasattr(dataset, "iter_torch_batches"):
        msg = (
            "dataset must be a PyTorch data set, got a shard of Ray Data, which is cut into equal "
            "parts for the whole run. Read the samples by a map-style data set, or leave the "
            "loader as it is: shares stay equal then."
        )
        raise InvalidLoaderError(msg)
    is_stream = isinstance(dataset, IterableDataset)
    if not is_stream and not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        msg = (
            "dataset must have a length and items by index, or be an IterableDataset, got "
            f"{type(dataset).__name__}. Wrap it into a torch.utils.data.Dataset."
        )
        raise InvalidLoaderError(msg)
    for name, value in (("batch_size", batch_size), ("accumulate", accumulate)):
        if read_count(value) is None:
            msg = (
                f"{name} must be a whole number of at least 1, got {value!r}. "
                "batch_size counts the samples of all workers together."
            )
            raise InvalidLoaderError(msg)
    for name in OURS:
        if name in options:
            msg = f"{name} can't be passed on to the DataLoader: the batches are made here."
            raise InvalidLoaderError(msg)


def _check_count(count: object) -> None:
    if count is not None and not callable(count):
        msg = f"count must be a function of a batch, got {count!r}. Leave it out to count samples."
        raise InvalidLoaderError(msg)


def _check_stream(accumulate: int, sampler: object) -> None:
    if accumulate > 1 or sampler is not None:
        msg = (
            "accumulate and sampler need a data set with a length, got an IterableDataset. "
            "Take a smaller batch_size and accumulate with model.no_sync()."
        )
        raise InvalidLoaderError(msg)


def _length(dataset: Any, sampler: Any) -> int:  # noqa: ANN401 - it has a length
    if sampler is None:
        return len(dataset)
    if isinstance(sampler, DistributedSampler):
        msg = (
            "sampler must go through all samples, got a DistributedSampler, which goes through one "
            "worker's. Leave it out: workers take their parts of each batch."
        )
        raise InvalidLoaderError(msg)
    if not hasattr(sampler, "__len__"):
        msg = "sampler must have a length, so that all workers take as many steps. Give it one."
        raise InvalidLoaderError(msg)
    return len(sampler)


def _check_length(length: int, least: int) -> None:
    if length == 0:
        msg = "dataset must have a sample, got one of length 0. Look at what it is read from."
        raise InvalidLoaderError(msg)
    if length < least:
        msg = (
            f"drop_last must leave a batch, got {length} samples for a batch of {least}. "
            "Take a smaller batch_size, or leave drop_last out."
        )
        raise InvalidLoaderError(msg)


def _check_alike(joined: Exchange, own: Mapping[str, float]) -> None:
    """Refuses loaders that differ between workers: their batches and steps would too."""
    told = joined.gather([float(value) for value in own.values()])
    for name, values in zip(own, zip(*told, strict=True), strict=True):
        if len(set(values)) > 1:
            msg = (
                f"every worker must prepare the same loader, got {name} "
                f"{[int(value) for value in values]} by worker. Pass all of them the whole data "
                "set and the same arguments: each takes its part of every batch."
            )
            raise InvalidLoaderError(msg)


def _order(
    dataset: Any,  # noqa: ANN401 - it has a length
    sampler: Iterable[int] | None,
    seed: int,
    joined: Exchange,
    *,
    shuffle: bool,
) -> Order:
    if sampler is None:
        return shuffled(len(dataset), seed, shuffle=shuffle)
    set_epoch: Callable[[int], object] = getattr(sampler, "set_epoch", lambda _: None)

    def order(epoch: int) -> Sequence[int]:
        set_epoch(epoch)
        drawn = [int(index) for index in sampler]
        return [int(index) for index in joined.from_first(drawn)]

    return order


def _least_rows() -> int:
    return CURRENT.least_rows


def _unchanged(sample: Any) -> Any:  # noqa: ANN401 - any sample
    return sample

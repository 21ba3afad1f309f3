"""The default process group of PyTorch, rebuilt over the first workers of one start."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta

import torch.distributed as dist
from torch.distributed import (  # type: ignore[attr-defined]  # public, but not typed so
    PrefixStore,
    TCPStore,
)

from raycosttune.errors import RayCostTuneError


class ProfileLostError(RayCostTuneError, RuntimeError):
    """Says that a worker no longer answers, so that a profile can't go on."""


@dataclass(frozen=True)
class Failure:
    """Is why a cell was not measured.

    Attributes:
        reason: What was raised, for people.
        out_of_memory: Whether memory ran out.
        order: 1 for the first worker that failed in a cell: others may only have lost touch
            with it.
    """

    reason: str
    out_of_memory: bool = False
    order: int = 1


class Subgroup:
    """Rebuilds the default process group over fewer workers, and lets them agree.

    All workers of the start must create it together, while their group is whole. Its store
    lives in the first worker and outlasts the groups, which need no further ports.

    Args:
        host: Address of this worker; that of the first one is used.
        node: Number of this worker's node.
        timeout_seconds: Limit of each collective and of each wait for other workers.

    Attributes:
        rank: This worker.
        size: Workers of the start.
        nodes: Node of each worker, by rank.
    """

    def __init__(self, host: str, node: int, timeout_seconds: float) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._backend = dist.get_backend()
        self._held = dist.group.WORLD
        self._timeout = timedelta(seconds=timeout_seconds)
        address: list[tuple[str, int]] = [("", 0)]
        store = None
        if self.rank == 0:
            store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=self._timeout)
            address = [(host, store.port)]
        dist.broadcast_object_list(address, src=0)
        self._store = store or TCPStore(*address[0], timeout=self._timeout)
        self._store.set(f"node/{self.rank}", str(node))
        self.nodes = [int(self._read(f"node/{rank}")) for rank in range(self.size)]

    def use(self, name: str, workers: int) -> None:
        """Makes the first workers the default group; only these call it, with a new name.

        Raises:
            ProfileLostError: If one of them does not come in time.
        """
        self.leave()
        with self._answered(name, self._timeout):
            dist.init_process_group(
                self._backend,
                store=PrefixStore(name, self._store),
                rank=self.rank,
                world_size=workers,
                timeout=self._timeout,
            )
        # Were a DDP wrapper the last to hold the group, its end could wait for threads of the
        # group that wait for Python's lock: PyTorch gives the lock up only for Python's own.
        self._held = dist.group.WORLD

    def leave(self) -> None:
        """Destroys the default group; others that wait for this worker in it then fail."""
        if dist.is_initialized():
            dist.destroy_process_group()
        gc.collect()  # the network and its wrapper hold one another, and the group
        self._held = None

    def first_to_fail(self, name: str, workers: int, failure: Failure | None) -> Failure | None:
        """Tells the others of the first workers how a cell went here, and returns how it went.

        Returns:
            None where it went well on all of them; else a lack of memory, if there was one,
            or the first failure. It is the same on all.

        Raises:
            ProfileLostError: If a worker does not answer in time.
        """
        if failure is not None:
            order = self._store.add(f"{name}/failed", 1)
            failure = Failure(failure.reason, failure.out_of_memory, order)
        told = json.dumps(failure and asdict(failure))
        self._store.set(f"{name}/{self.rank}", told)
        answers = [json.loads(self._read(f"{name}/{rank}")) for rank in range(workers)]
        failures = [Failure(**answer) for answer in answers if answer is not None]
        return min(failures, key=lambda one: (not one.out_of_memory, one.order), default=None)

    def meet(self, name: str, timeout_seconds: float) -> None:
        """Waits until all workers of the start have come here; idle ones need no group for it.

        Raises:
            ProfileLostError: If that takes too long.
        """
        self._store.set(f"{name}/met/{self.rank}", "here")
        for rank in range(self.size):
            self._read(f"{name}/met/{rank}", timedelta(seconds=timeout_seconds))

    def _read(self, key: str, timeout: timedelta | None = None) -> str:
        limit = timeout or self._timeout
        with self._answered(key, limit):
            self._store.wait([key], limit)
            return self._store.get(key).decode()

    @contextmanager
    def _answered(self, name: str, limit: timedelta) -> Iterator[None]:
        try:
            yield
        except dist.DistError as error:
            msg = (
                f"every worker of a profile must answer within {limit.total_seconds():g} s, "
                f'got no answer to "{name}". Look into the logs of the workers, or raise '
                "timeout_seconds."
            )
            raise ProfileLostError(msg) from error

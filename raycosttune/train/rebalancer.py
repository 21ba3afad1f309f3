"""Keeps the shares of the workers of a run, and adjusts them to what they measure."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from raycosttune.core.noise_scale import NoiseScale, NoiseTerms, pooled
from raycosttune.core.rebalance import Equal, Policy, Sample, WorkerLog, trimmed
from raycosttune.core.share import InvalidShareError, equal_shares, round_shares
from raycosttune.core.value import read_real, read_whole
from raycosttune.train.exchange import Exchange, text_from_first
from raycosttune.train.share_state import listed, read_logs, write_logs
from raycosttune.train.step import Timing

logger = logging.getLogger(__name__)
NO_SHARE = -1
SLOW_SECONDS = 1.0  # of a plan


@dataclass(frozen=True)
class Measured:
    """Is what the workers did between two adjustments.

    Attributes:
        shares: Samples of a full step on each worker.
        compute_seconds: Seconds that each worker computed.
        idle_seconds: Seconds that each worker did not.
        noise_scale: Gradient noise scale in samples, None where it can't be told.
    """

    shares: tuple[int, ...]
    compute_seconds: tuple[float, ...]
    idle_seconds: tuple[float, ...]
    noise_scale: float | None

    @property
    def imbalance(self) -> float:
        """Compute seconds of the slowest worker over their mean, 1 where all are equal."""
        total = sum(self.compute_seconds)
        return max(self.compute_seconds) * len(self.compute_seconds) / total if total > 0 else 1.0


@dataclass
class SharePlan:
    """Holds which shares hold from which step on.

    Attributes:
        entries: Number of a step and the shares from there on, in order.
    """

    entries: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def at(self, step: int) -> tuple[int, ...]:
        """Returns the shares of a step."""
        while len(self.entries) > 1 and self.entries[1][0] <= step:
            self.entries.pop(0)
        return self.entries[0][1]

    @property
    def latest(self) -> tuple[int, ...]:
        """The shares that hold in the end."""
        return self.entries[-1][1]

    def change(self, step: int, shares: tuple[int, ...]) -> None:
        """Lets other shares hold from a step on."""
        self.entries.append((step, shares))


class Rebalancer:
    """Measures, plans on the first worker, and tells all of them.

    Args:
        batch_size: Samples of a step over all workers.
        exchange: Joins the workers.
        policy: Turns what was measured into shares.
        caps: Largest shares of workers that ran out of memory, by name.
    """

    def __init__(
        self,
        batch_size: int,
        exchange: Exchange,
        policy: Policy | None = None,
        caps: Mapping[str, int] | None = None,
    ) -> None:
        if batch_size < exchange.size:
            msg = (
                f"batch_size must be at least the number of workers, got {batch_size} for "
                f"{exchange.size} workers. It is the batch of all workers together: take a "
                "larger one, or fewer workers."
            )
            raise InvalidShareError(msg)
        self.batch_size = batch_size
        self.policy = policy or Equal()
        self.latest: Measured | None = None
        self.noise = NoiseScale()
        self._exchange = exchange
        self._caps = dict(caps or {})
        self._round = 0
        self._is_slow = False
        self.logs = tuple(WorkerLog(name, (), self._caps.get(name)) for name in self._names())
        self.plan = SharePlan([(0, self._capped(equal_shares(batch_size, exchange.size)))])

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._exchange.rank

    @property
    def share(self) -> int:
        """This worker's share that holds in the end."""
        return self.plan.latest[self.rank]

    def adjust(self, timing: Timing, terms: NoiseTerms, ahead: int) -> None:
        """Takes in what this worker measured and may change the shares; all call it together.

        Args:
            timing: What this worker did.
            terms: What it saw of the gradients.
            ahead: Number of the first step whose part it has not drawn yet.
        """
        own = (*astuple(timing), *astuple(terms), float(ahead))
        told = self._exchange.gather(own)
        size = len(astuple(timing))
        timings = [Timing(*row[:size]) for row in told]  # type: ignore[arg-type]  # counts as floats
        self.noise = self.noise.updated(pooled([NoiseTerms(*row[size:-1]) for row in told]))
        self._round += 1
        self.logs = tuple(map(self._logged, self.logs, timings))
        self.latest = Measured(
            shares=self.plan.latest,
            compute_seconds=tuple(timing.compute_seconds for timing in timings),
            idle_seconds=tuple(max(t.wall_seconds - t.compute_seconds, 0.0) for t in timings),
            noise_scale=self.noise.samples,
        )
        self._replan(int(max(row[-1] for row in told)))

    def _logged(self, log: WorkerLog, timing: Timing) -> WorkerLog:
        if timing.full_steps < 1:
            return log
        sample = Sample(
            self._round, int(timing.full_share), timing.step_seconds, int(timing.full_steps)
        )
        return trimmed(replace(log, samples=(*log.samples, sample)))

    def _replan(self, step: int) -> None:
        shares = self.plan.latest
        problem = ""
        if self.rank == 0:
            try:
                shares = self._planned(shares)
            except InvalidShareError as error:
                shares, problem = (NO_SHARE,) * len(shares), str(error)
        agreed = tuple(map(int, self._exchange.from_first(shares)))
        if NO_SHARE in agreed:
            raise InvalidShareError(problem or "the first worker found no shares that fit")
        if agreed != self.plan.latest:
            self.plan.change(step, agreed)

    def _planned(self, shares: tuple[int, ...]) -> tuple[int, ...]:
        began = time.perf_counter()
        try:
            planned = [read_whole(s) for s in self.policy.plan(self.logs, shares, self.batch_size)]
        except InvalidShareError:
            raise
        except Exception:
            logger.exception("no shares can be planned from what was measured; they stay")
            return shares
        self._heed_delay(time.perf_counter() - began)
        whole = tuple(share for share in planned if share is not None)
        if (len(whole), len(planned), sum(whole)) == (len(shares), len(shares), self.batch_size):
            return self._capped(whole)
        logger.error(
            "a policy must plan %d whole shares whose sum is %d, got %s; they stay",
            *(len(shares), self.batch_size, planned),
        )
        return shares

    def _heed_delay(self, seconds: float) -> None:
        if seconds > SLOW_SECONDS and not self._is_slow:
            self._is_slow = True
            logger.warning(
                "the policy took %.1f s to plan shares, while all workers waited. Let it take less "
                "time, or adjust less often.",
                seconds,
            )

    def _capped(self, shares: tuple[int, ...]) -> tuple[int, ...]:
        """Returns shares that fit into each worker's memory, whatever was planned."""
        most = [self.batch_size if log.most is None else log.most for log in self.logs]
        if all(share <= cap for share, cap in zip(shares, most, strict=True)):
            return shares
        if sum(most) < self.batch_size:
            msg = (
                f"the batch must fit into the workers' memory, got {self.batch_size} samples "
                f"where at most {most} fit. Take a smaller batch, more workers, or accumulate."
            )
            raise InvalidShareError(msg)
        return round_shares(shares, self.batch_size, [(0, cap) for cap in most])

    def _names(self) -> list[str]:
        names = self._exchange.names()
        return [
            name if name not in names[:k] else f"{name}#{names[:k].count(name)}"
            for k, name in enumerate(names)
        ]

    def state(self) -> dict[str, Any]:
        """Returns what a restart goes on from, as plain JSON."""
        return {
            "round": self._round,
            "shares": list(self.plan.latest),
            "noise": list(astuple(self.noise)),
            "workers": write_logs(self.logs),
        }

    def load_first(self, state: Mapping[str, Any]) -> None:
        """Goes on from the state that the first worker has found, if it has; see load_state.

        All workers call it together, as one that can't read its checkpoint would be alone.
        """
        text = text_from_first(self._exchange, json.dumps(state) if state else "")
        if text:
            self.load_state(json.loads(text))

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what was measured before a restart, as far as it can be read.

        Workers are known by their names. Where they are the same, their shares stay; else the
        policy plans anew, with the samples of those that remain.

        Args:
            state: What `state` returned.
        """
        known = {log.name: log for log in read_logs(state)}
        self.logs = tuple(
            replace(log, samples=known[log.name].samples, most=_smaller(log, known[log.name]))
            if log.name in known
            else log
            for log in self.logs
        )
        rounds = [sample.round for log in self.logs for sample in log.samples]
        self._round = max(rounds, default=0)
        noise = [read_real(number) for number in listed(state.get("noise"))]
        if len(noise) == len(astuple(NoiseScale())):
            self.noise = NoiseScale(*(number or 0.0 for number in noise))
        shares = tuple(read_whole(share) or 0 for share in listed(state.get("shares")))
        are_same = list(known) == [log.name for log in self.logs]
        if are_same and not self._caps and sum(shares) == self.batch_size:
            self.plan.entries = [(0, shares)]
        else:
            self._replan(0)


def _smaller(one: WorkerLog, other: WorkerLog) -> int | None:
    caps = [log.most for log in (one, other) if log.most is not None]
    return min(caps, default=None)

"""The policies that a replay can compare, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.session import Session
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.peer import Peer, PeerPolicy
from raycosttune.simulate.policy import Policy
from raycosttune.simulate.workload import Workload

OURS = "ours"
OURS_FIXED = "ours-fixed"  # whose runs stay on their workers
ZEUS = "zeus"
TRIALS = 20


@dataclass(frozen=True)
class PeerEntry:
    """Says where a peer is and what it is made with.

    Attributes:
        module: Module below raycosttune.simulate.peers; imported when the peer is made.
        kind: Name of its class.
        arguments: Keyword arguments beyond space, goal, cost and seed.
        is_given_noise_scale: Whether it gets what its runs could measure of the gradient.
    """

    module: str
    kind: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    is_given_noise_scale: bool = False


PEERS: dict[str, PeerEntry] = {
    "random": PeerEntry("random", "RandomSearch"),
    "tpe": PeerEntry("optuna_tpe", "Tpe"),
    "tpe-hyperband": PeerEntry("optuna_tpe", "HyperbandTpe"),
    "tpe-constrained": PeerEntry("optuna_constrained", "ConstrainedTpe"),
    "gp-constrained": PeerEntry("optuna_constrained", "ConstrainedGp"),
    "flaml": PeerEntry("flaml_peer", "FlamlBlendSearch"),
    ZEUS: PeerEntry("zeus_peer", "ZeusBatch"),
    "liang2022": PeerEntry("liang2022", "Liang2022"),
    "liang2022-local": PeerEntry("liang2022", "Liang2022", {"reading": "local"}),
    "workers-then-batch": PeerEntry("independent", "WorkersThenBatch"),
    "batch-then-workers": PeerEntry("independent", "BatchThenWorkers"),
    "linear-scaling": PeerEntry("linear_scaling", "LinearScaling"),
    "pollux": PeerEntry("pollux", "PolluxModel", is_given_noise_scale=True),
}


def policy_names() -> list[str]:
    """Lists every policy; Zeus needs its worker count, as in `zeus@4`."""
    return [OURS, OURS_FIXED, *PEERS]


def start_policy(
    name: str,
    workload: Workload,
    goal: Goal,
    cost: CostMetric,
    *,
    seed: int,
    trials: int = TRIALS,
) -> Callable[[Callable[[], float]], Policy]:
    """Returns what `simulate` starts: the session, or a peer with so many trials.

    Args:
        name: One of `policy_names()`.
        workload: What will be simulated; a policy sees its space, and Pollux its noise scale.
        goal: Target and limits.
        cost: The cost metric.
        seed: For a peer's own random numbers.
        trials: Most runs of a peer.

    Raises:
        InvalidWorkloadError: If there is no such policy, or what it needs isn't installed.
    """
    if name in (OURS, OURS_FIXED):
        # One trial at a time, as every peer here, so that spends can be compared.
        return partial(start_session, workload, goal, cost, resize=name == OURS)
    peer = make_peer(name, workload, goal, cost, seed=seed)
    return lambda _: PeerPolicy(peer, trials)


def start_session(
    workload: Workload,
    goal: Goal,
    cost: CostMetric,
    clock: Callable[[], float],
    *,
    resize: bool = True,
) -> Session:
    """Starts a session on a workload, whose runs may change their workers or not."""
    able = Abilities(profile=True, resize=resize)
    args = workload.space, goal
    return Session(*args, cost=cost, max_concurrent=1, abilities=able, clock=clock)


def make_peer(name: str, workload: Workload, goal: Goal, cost: CostMetric, *, seed: int) -> Peer:
    """Makes a peer; see `start_policy`."""
    kind, _, workers = name.partition("@")
    entry = PEERS.get(kind)
    if entry is None or (kind == ZEUS) is not workers.isdecimal():
        known = ", ".join(policy_names()).replace(ZEUS, f"{ZEUS}@WORKERS")
        msg = f"a policy must be one of {known}, got {name!r}"
        raise InvalidWorkloadError(msg)
    try:
        module = import_module(f"raycosttune.simulate.peers.{entry.module}")
    except ModuleNotFoundError as error:
        msg = f"the policy {kind!r} needs {error.name}: pip install 'raycosttune[peers-{kind}]'"
        raise InvalidWorkloadError(msg) from error
    more: dict[str, object] = dict(entry.arguments)
    if workers:
        more["workers"] = int(workers)
    if entry.is_given_noise_scale:
        more["noise_scale"] = partial(noise_scale, workload)
    peer: Peer = getattr(module, entry.kind)(workload.space, goal, cost, seed, **more)
    return peer


def noise_scale(workload: Workload, batch_size: int, epoch: float) -> float:
    """Returns the gradient noise scale that a run would have measured by an epoch."""
    curve = workload.curve(batch_size)
    seen: Sequence[float] = [
        scale
        for at, scale in zip(curve.epochs, curve.noise_scales, strict=False)
        if at <= epoch * (1 + 1e-9)
    ]
    return seen[-1] if seen else float("nan")

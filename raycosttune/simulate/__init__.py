"""Replays sweeps on measured or analytic jobs, on a virtual clock."""

from raycosttune.core.profile import Profile, Profiled
from raycosttune.simulate.analytic import AnalyticWorkload
from raycosttune.simulate.bill import Bill, bill
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.outcome import Moment, Outcome, SimulatedTrial
from raycosttune.simulate.peer import Choice, Peer, PeerPolicy, PeerTrial
from raycosttune.simulate.policy import Policy
from raycosttune.simulate.recorded import RecordedWorkload
from raycosttune.simulate.run import simulate
from raycosttune.simulate.trace import TraceWorkload, list_workloads
from raycosttune.simulate.typed import TypedWorkload
from raycosttune.simulate.workload import Curve, Workload

__all__ = [
    "AnalyticWorkload",
    "Bill",
    "Choice",
    "Curve",
    "Moment",
    "Noise",
    "Outcome",
    "Peer",
    "PeerPolicy",
    "PeerTrial",
    "Policy",
    "Profile",
    "Profiled",
    "RecordedWorkload",
    "SimulatedTrial",
    "TraceWorkload",
    "Truth",
    "TypedWorkload",
    "Workload",
    "bill",
    "list_workloads",
    "simulate",
]

"""What there is to see of a sweep, as plain data that figures, page and commands read."""

import math
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.prediction import Prediction
from raycosttune.core.space import Allocation


class Status(StrEnum):
    """How far a sweep is."""

    EMPTY = "empty"
    RUNNING = "running"
    BROKEN_OFF = "broken off"
    FINISHED = "finished"


@dataclass(frozen=True)
class Held:
    """Is a stretch of time in which a trial held its workers.

    Attributes:
        start: Seconds since the sweep began.
        end: Likewise.
        workers: Workers held.
    """

    start: float
    end: float
    workers: int


@dataclass(frozen=True)
class Workers:
    """Is what each worker of a trial did, by epoch.

    Attributes:
        epochs: Shape (e,).
        shares: Samples of each batch, shape (e, workers).
        compute_seconds: Seconds of an epoch spent computing, shape (e, workers).
        idle_seconds: Seconds of an epoch spent waiting for others, shape (e, workers).
    """

    epochs: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    compute_seconds: tuple[tuple[float, ...], ...]
    idle_seconds: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Trial:
    """Is one trial.

    Attributes:
        trial_id: Tune's name of it.
        what: Its configuration in words, with the workers that it was moved to.
        workers: Workers that it was asked for with.
        batch_size: Global batch.
        nodes: Machines.
        recipe: Other hyperparameters, as proposed.
        why: Why it was started, the end of a sentence.
        end: `running`, `broken_off` with its sweep, or why it ended.
        reason: The same in a sentence.
        reached: Epochs to the target, None where it was not reached.
        expected: Epochs to the target as far as is known, for one that has not reached it.
        epochs: Shape (e,), of the run that led to the present state.
        values: The goal's metric at these epochs, shape (e,).
        seconds: Wall time paid.
        cost: What that cost.
        attempts: Starts.
        held: When it held which workers, in order.
        checkpoint: Where its last state lies, or None.
        measured: What its workers did, None where they did not say.
        node_type: Type of the machines, "" where there is but one.
    """

    trial_id: str
    what: str
    workers: int
    batch_size: int
    nodes: int
    recipe: dict[str, object]
    why: str
    end: str
    reason: str
    reached: float | None
    expected: float | None
    epochs: tuple[float, ...]
    values: tuple[float | None, ...]
    seconds: float
    cost: float
    attempts: int
    held: tuple[Held, ...]
    checkpoint: str | None
    measured: Workers | None = None
    node_type: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it has no end yet."""
        return self.end == "running"


@dataclass(frozen=True)
class Profiled:
    """Is a profile of step times.

    Attributes:
        what: What it was for, what it cost and how it ended, in words.
        cost: What it cost.
        held: When it held which workers.
    """

    what: str
    cost: float
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Cell:
    """Is a choice of workers and batch, and what is known of it.

    Attributes:
        workers: Workers.
        batch_size: Global batch.
        nodes: Machines.
        epoch_seconds: Likely seconds of an epoch within their bounds, None before a measurement.
        cost: Likely cost of a run within its bounds, None while unknown.
        seconds: Likely seconds of a run, likewise.
        is_timed: Whether its epochs were timed.
        is_measured: Whether its epochs to the target are known too.
        node_type: Type of the machines, "" where there is but one.
    """

    workers: int
    batch_size: int
    nodes: int
    epoch_seconds: Prediction | None
    cost: Prediction | None
    seconds: Prediction | None
    is_timed: bool
    is_measured: bool
    node_type: str = ""


@dataclass(frozen=True)
class Need:
    """Is how many epochs a recipe needs at a batch.

    Attributes:
        recipe: The recipe in words, empty where nothing but workers and batch is searched.
        batch_size: Global batch.
        epochs: Likely epochs to the target within their bounds.
        is_measured: Whether a run of it reached the target.
    """

    recipe: str
    batch_size: int
    epochs: Prediction
    is_measured: bool


@dataclass(frozen=True)
class Choice:
    """Is a configuration as what it takes: a point of cost against time.

    Attributes:
        what: The configuration in words.
        seconds: Start-up and training to the target.
        deadline: The least deadline that it counts as meeting.
        cost: What a run costs.
        is_measured: Whether its epochs and its epoch time are both measured.
        is_plan: Whether it is the plan.
        is_best: Whether none is both faster and cheaper.
    """

    what: str
    seconds: float
    deadline: float
    cost: float
    is_measured: bool
    is_plan: bool
    is_best: bool


@dataclass(frozen=True)
class Planned:
    """Is the plan.

    Attributes:
        what: The configuration in words.
        config: Workers, batch and the other hyperparameters as proposed.
        trial_id: The trial that reached the target.
        checkpoint: Where its model lies, or None.
        epochs: Epochs to the target.
        seconds: Start-up and training.
        cost: What a run costs.
        gap: Largest fraction of that which anything untried could save.
        untried: Cells that could still be cheaper.
        likely_saving: What an untried cell likely saves at most, None where nothing tells.
    """

    what: str
    config: dict[str, object]
    trial_id: str
    checkpoint: str | None
    epochs: float
    seconds: Prediction
    cost: Prediction
    gap: float
    untried: int
    likely_saving: float | None = None


@dataclass(frozen=True)
class Assumption:
    """Is an assumption that the bounds rest on, held against what was measured.

    Attributes:
        name: What is assumed, a sentence.
        slack: By how much the bounds are widened, relative.
        breaks: Where measurements contradict it, one sentence each.
    """

    name: str
    slack: float
    breaks: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """Is everything that there is to see of a sweep.

    Attributes:
        name: Name of the run.
        status: How far it is.
        note: What the status rests on, a sentence.
        goal: Target and limits.
        unit: Unit of all costs.
        summary: The plan in a sentence, or why there is none.
        plan: The plan, or None.
        spent: What the search has cost.
        elapsed_seconds: Wall time from the first trial to the last row.
        is_timed: Whether the journal says when things happened; else times are pieced together.
        trials: In the order of their start.
        cells: Every legal one.
        needs: Epochs to the target by recipe and batch.
        choices: Configurations by what they take.
        assumptions: What the bounds rest on.
        notes: Deadline and metric prices, what comes next and the like, a sentence each.
        profiles: Profiles of step times.
    """

    name: str
    status: Status
    note: str
    goal: Goal
    unit: str
    summary: str
    plan: Planned | None
    spent: float
    elapsed_seconds: float
    is_timed: bool
    trials: tuple[Trial, ...]
    cells: tuple[Cell, ...]
    needs: tuple[Need, ...]
    choices: tuple[Choice, ...]
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    profiles: tuple[Profiled, ...] = ()

    @property
    def profile_cost(self) -> float:
        """What all profiles have cost."""
        return math.fsum(profile.cost for profile in self.profiles)

    def trial(self, trial_id: str) -> Trial | None:
        """Returns a trial by its id, None for an unknown one."""
        return next((trial for trial in self.trials if trial.trial_id == trial_id), None)


def to_data(value: object) -> Any:  # noqa: ANN401 - JSON is of many types
    """Returns a view, or a part of one, as JSON-able data; what is not finite is null."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = {item.name: to_data(getattr(value, item.name)) for item in fields(value)}
        return value.data() if isinstance(value, Allocation) else pairs
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    return value if isinstance(value, str | int | bool | None) else str(value)

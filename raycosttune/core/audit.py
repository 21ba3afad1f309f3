"""The assumptions that the bounds rest on, held against what was measured."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from raycosttune.core.accuracy_surrogate import DEFAULT_SLACK as EPOCHS_SLACK
from raycosttune.core.epochs import Epochs
from raycosttune.core.figure import counted, listed, told_apart
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.space import Allocation
from raycosttune.core.time_surrogate import DEFAULT_SLACK as TIME_SLACK

TIME = (
    "An epoch gets no slower with a larger batch or more workers of a node, and n times the "
    "workers make it at most n times faster."
)
EPOCHS = (
    "Epochs to the target do not fall as the batch grows, and grow by at most the batch's factor."
)
WORKERS = "Epochs to the target depend on the batch, not on the workers."
RECIPES = "Recipes differ in their epochs by a factor that is the same at every batch."


@dataclass(frozen=True)
class Audit:
    """Is an assumption and what speaks against it.

    Attributes:
        name: What is assumed, a sentence.
        slack: By how much the bounds are widened for it, relative.
        breaks: Measurements that contradict it by more than the least slack, worst first.
    """

    name: str
    slack: float
    breaks: tuple[str, ...]


def audit(known: Knowledge) -> tuple[Audit, ...]:
    """Holds the assumptions on epoch time and on epochs against the measurements.

    Each slack is at least what leaves no measurement outside the bounds that the others set: it
    is calibrated by leaving each one out.
    """
    slack = math.expm1(known.accuracy.slack)
    return (
        Audit(TIME, math.expm1(known.times.slack), _of_times(known)),
        Audit(EPOCHS, slack, (*_falling(known), *_of_epochs(known))),
        Audit(WORKERS, slack, _of_workers(known)),
        Audit(RECIPES, slack, _of_recipes(known)),
    )


def against(known: Knowledge) -> list[str]:
    """Says what speaks against each assumption most, one line each."""
    return [
        f"against an assumption ({found.name.rstrip('.')}): {found.breaks[0]}"
        + (f", and {len(found.breaks) - 1} more" if len(found.breaks) > 1 else "")
        for found in audit(known)
        if found.breaks
    ]


def _of_times(known: Knowledge) -> tuple[str, ...]:
    cells, names = known.space.cells, known.times.names
    found = [(name, broken) for name in names for broken in known.times.of(name).broken]
    broken = sorted((one for one in found if one[1][2] > TIME_SLACK), key=lambda one: -one[1][2])
    return tuple(_faster(known, name, cells[v], cells[u], apart) for name, (v, u, apart) in broken)


def _faster(known: Knowledge, name: str, cell: Allocation, other: Allocation, apart: float) -> str:
    time = known.times.of(name)
    seconds = (time.predict(one).mid for one in (cell, other))
    took, others = told_apart(*seconds)
    where = cell.named(json.loads(name) if name else {})
    return (
        f"{where} took {took} s an epoch, beside {others} s of {_named(other)}: "
        f"{math.expm1(apart):.0%} faster than the assumption allows"
    )


def _of_epochs(known: Knowledge) -> tuple[str, ...]:
    found = [(runs.violation, key) for key, runs in known.tally.epochs.items()]
    broken = sorted((pair for pair in found if pair[0] > EPOCHS_SLACK), reverse=True)
    return tuple(
        f"{_recipe(known, key)} contradict each other by {math.expm1(apart):.0%} over "
        f"{counted(len(known.tally.epochs[key].seen), 'batch size')}"
        for apart, key in broken
    )


def _falling(known: Knowledge) -> Iterator[str]:
    """Says which recipes need fewer epochs at larger batches first: their bounds have a valley."""
    for key, runs in known.tally.epochs.items():
        if runs.valleys != (0.0,):
            yield (
                f"{_recipe(known, key)} need fewer epochs as the batch grows, up to some batch: "
                "the bounds allow for that, and reach farther down"
            )


def _of_workers(known: Knowledge) -> tuple[str, ...]:
    """Says where runs of one batch and recipe on different workers contradict each other."""
    found: dict[tuple[str, int], dict[int, list[Epochs]]] = defaultdict(lambda: defaultdict(list))
    for digest in known.digests:
        if digest.epochs is not None and not digest.is_resized:
            workers = digest.record.allocation.workers
            found[digest.recipe, digest.epochs.batch_size][workers].append(digest.epochs)
    broken = []
    for (key, batch), runs in found.items():
        most = max(runs, key=lambda n: max(run.low for run in runs[n]))
        others = [n for n in runs if n != most]
        if not others:
            continue
        fewest = min(others, key=lambda n: min(run.high for run in runs[n]))
        low, high = max(run.low for run in runs[most]), min(run.high for run in runs[fewest])
        if low > high * math.exp(EPOCHS_SLACK):
            much, few = told_apart(low, high)
            where = f"{_recipe(known, key)} at batch {batch}"
            needed = f"more than {much} epochs on {counted(most, 'worker')}"
            text = f"{where} need {needed}, {few} on {counted(fewest, 'worker')}"
            broken.append((low / high, text))
    return tuple(text for _, text in sorted(broken, reverse=True))


def _of_recipes(known: Knowledge) -> tuple[str, ...]:
    """Says which recipes' epochs are no fixed multiple of those of the best one."""
    if known.incumbent is None:
        return ()
    best = known.tally.epochs[known.incumbent.recipe]
    others = {key: runs for key, runs in known.tally.epochs.items() if runs is not best}
    broken = []
    for key, runs in others.items():
        low, high = runs.over(best)
        if low > high * math.exp(EPOCHS_SLACK):
            more, less = told_apart(low, high)
            times = f"at least {more} times the epochs of the best at one batch"
            text = f"{_recipe(known, key)} need {times}, at most {less} times at another"
            broken.append((low / high, text))
    return tuple(text for _, text in sorted(broken, reverse=True))


def _recipe(known: Knowledge, key: str) -> str:
    recipe = listed(known.recipes[key])
    return f"the runs with {recipe}" if recipe else "the runs"


def _named(cell: Allocation) -> str:
    return cell.named({})

"""Tries the laws of costs on a metric of one's own, by Hypothesis: for a test suite."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from raycosttune.core.cost import CostMetric, checked_cost, may_fall
from raycosttune.core.cost_law import check_cost_metric as check_on_cells
from raycosttune.core.cost_law import check_seconds, check_workers
from raycosttune.core.figure import told_apart
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidCostError

MOST_WORKERS, MOST_BATCH, TIMES = 512, 65_536, 32
PER_TENFOLD = 1000  # how densely first times are drawn, from 0.01 s to 10**7 s
Law = Callable[[CostMetric, Allocation, Allocation, Sequence[float]], None]


def check_cost_metric(metric: CostMetric, *, examples: int = 200) -> None:
    """Tries a cost metric on drawn inputs, and says which law it breaks on the simplest one found.

    The laws: a cost is a finite number of at least 0; it is the same for the same input; it does
    not fall as seconds grow; nor as workers or nodes are added. The last two are not asked of a
    metric with `monotone = False`. A sweep tries the same on a fixed grid over its own cells
    before its first trial; this tries more.

    Args:
        metric: The cost metric.
        examples: How many inputs are drawn for each law.

    Raises:
        InvalidCostError: If a law is broken; the message names it and the input.
        ModuleNotFoundError: If Hypothesis is not installed.
    """
    check_on_cells(metric, ())
    laws: list[Law] = [_is_a_cost, _is_the_same_again]
    if not may_fall(metric):
        laws += [_does_not_fall_with_seconds, _does_not_fall_with_workers]
    for law in laws:
        _tried(law, metric, examples)


def _tried(law: Law, metric: CostMetric, examples: int) -> None:
    try:
        from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415 - for tests only
        from hypothesis import strategies as st  # noqa: PLC0415 - likewise
    except ImportError as error:
        msg = "check_cost_metric needs Hypothesis: pip install hypothesis"
        raise ModuleNotFoundError(msg, name="hypothesis") from error
    first = st.integers(-2 * PER_TENFOLD, 7 * PER_TENFOLD).map(lambda k: 10.0 ** (k / PER_TENFOLD))
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "workers": st.integers(1, MOST_WORKERS),
        "more_workers": st.integers(0, MOST_WORKERS),
        "batch_size": st.integers(1, MOST_BATCH),
        "per_node": st.integers(1, MOST_WORKERS),
        "first": first | st.integers(0, 10_000).map(float),
        "growth": st.integers(1, PER_TENFOLD // 2),
    }

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.fixed_dictionaries(drawn))
    def tried(values: dict[str, Any]) -> None:
        workers, per_node = values["workers"], values["per_node"]
        few, many = (
            Allocation(n, values["batch_size"], -(-n // per_node))
            for n in (workers, workers + values["more_workers"])
        )
        growth = 1 + values["growth"] / PER_TENFOLD
        law(metric, few, many, [values["first"] * growth**k for k in range(TIMES)])

    tried()


def _is_a_cost(
    metric: CostMetric, few: Allocation, many: Allocation, times: Sequence[float]
) -> None:
    del few
    for seconds in times:
        checked_cost(metric, many, seconds)


def _is_the_same_again(
    metric: CostMetric, few: Allocation, many: Allocation, times: Sequence[float]
) -> None:
    del many
    seconds = times[0]
    first, again = (checked_cost(metric, few, seconds) for _ in range(2))
    if first != again:
        before, after = told_apart(first, again, digits=6)
        msg = (
            f"{metric.unit}: a cost must be the same for the same input, got {before} and then "
            f"{after} for {few} over {seconds:g} s. Let it depend on its arguments alone."
        )
        raise InvalidCostError(msg)


def _does_not_fall_with_seconds(
    metric: CostMetric, few: Allocation, many: Allocation, times: Sequence[float]
) -> None:
    del many
    paid = [(seconds, checked_cost(metric, few, seconds)) for seconds in times]
    for sooner, later in pairwise(paid):
        check_seconds(metric, few, sooner, later)


def _does_not_fall_with_workers(
    metric: CostMetric, few: Allocation, many: Allocation, times: Sequence[float]
) -> None:
    for seconds in times:
        less, more = (checked_cost(metric, cell, seconds) for cell in (few, many))
        check_workers(metric, seconds, (few, less), (many, more))

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from raycosttune.core.array import Floats
from raycosttune.core.isotonic import Edges, bounds, isotonic, project, violation

# The solver closes the gap of the objective to 1e-8, so about its square root in the values.
TOLERANCE = 1e-3
VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=7)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Floats, Floats]:
    values = draw(VALUES)
    weights = draw(st.lists(st.floats(0.5, 2), min_size=len(values), max_size=len(values)))
    return np.array(values), np.array(weights)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Floats, Floats, Edges]:
    """Draws values on a small grid with bounded differences along both axes."""
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size = rows * columns
    numbers = st.lists(st.floats(-3, 3), min_size=size, max_size=size)
    weights = st.lists(st.floats(0.5, 2), min_size=size, max_size=size)
    index = np.arange(size).reshape(rows, columns)
    tail = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    head = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    allowed = np.array(draw(numbers))
    change = allowed[head] - allowed[tail]
    low = change - [draw(st.floats(0, 1)) for _ in tail]
    high = change + [draw(st.just(np.inf) | st.floats(0.1, 1)) for _ in tail]
    edges = Edges(tail, head, low, high)
    return np.array(draw(numbers)), np.array(draw(weights)), edges


def generic_projection(values: Floats, weights: Floats, edges: Edges) -> Floats:
    """Solves the same program as a least-distance problem (Lawson and Hanson 1974, ch. 23)."""
    rows, limits = [], []
    for tail, head, low, high in zip(edges.tail, edges.head, edges.low, edges.high, strict=True):
        row = np.zeros(len(values))
        row[head], row[tail] = 1.0, -1.0
        rows.append(row)
        limits.append(low)
        if np.isfinite(high):
            rows.append(-row)
            limits.append(-high)
    matrix, limit, root = np.array(rows), np.array(limits), np.sqrt(weights)
    system = np.vstack([(matrix / root).T, limit - matrix @ values])
    target = np.append(np.zeros(len(values)), 1.0)
    dual, _ = nnls(system, target, maxiter=1000)
    residual = system @ dual - target
    return np.asarray(values - residual[:-1] / residual[-1] / root, dtype=np.float64)


@given(sequences())
def test_the_monotone_fit_is_the_minimax_of_weighted_means(data: tuple[Floats, Floats]) -> None:
    values, weights = data
    k = len(values)

    def mean(i: int, j: int) -> float:
        return float(np.average(values[i : j + 1], weights=weights[i : j + 1]))

    expected = [
        max(min(mean(i, j) for j in range(at, k)) for i in range(at + 1)) for at in range(k)
    ]
    np.testing.assert_allclose(isotonic(values, weights), expected, atol=1e-9)
    falling = isotonic(-values, weights, increasing=False)
    np.testing.assert_allclose(falling, -isotonic(values, weights), atol=1e-9)


@settings(max_examples=60)
@given(problems())
def test_the_projection_is_that_of_a_generic_solver(problem: tuple[Floats, Floats, Edges]) -> None:
    values, weights, edges = problem
    expected = generic_projection(*problem) if len(edges.tail) else values
    np.testing.assert_allclose(project(values, weights, edges), expected, atol=TOLERANCE)


def test_a_projection_moves_what_breaks_its_shape_to_the_middle() -> None:
    values, weights = np.array([0.0, 5.0, 1.0, 9.0]), np.ones(4)
    low, high = np.zeros(3), np.array([np.inf, np.inf, 3.0])
    edges = Edges(np.arange(3), np.arange(1, 4), low, high)
    expected = [0.0, 4.0, 4.0, 7.0]
    np.testing.assert_allclose(project(values, weights, edges), expected, atol=TOLERANCE)
    none = np.zeros(0, dtype=np.int64)
    free = Edges(none, none, np.zeros(0), np.zeros(0))
    np.testing.assert_array_equal(project(values, weights, free), values)


@settings(max_examples=60)
@given(problems())
def test_a_projection_has_the_shape_and_projects_to_itself(
    problem: tuple[Floats, Floats, Edges],
) -> None:
    values, weights, edges = problem
    once = project(values, weights, edges)
    difference = once[edges.head] - once[edges.tail]
    assert np.all(difference >= edges.low - TOLERANCE)
    assert np.all(difference <= edges.high + TOLERANCE)
    np.testing.assert_allclose(project(once, weights, edges), once, atol=TOLERANCE)


@given(sequences())
def test_without_an_upper_limit_the_projection_is_the_monotone_fit(
    data: tuple[Floats, Floats],
) -> None:
    values, weights = data
    k = len(values) - 1
    edges = Edges(np.arange(k), np.arange(1, k + 1), np.zeros(k), np.full(k, np.inf))
    np.testing.assert_allclose(
        project(values, weights, edges), isotonic(values, weights), atol=TOLERANCE
    )


@st.composite
def measured(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Draws a truth, whose differences are bounded, and intervals around some of its points."""
    truth = np.array(draw(st.lists(st.floats(-5, 5), min_size=1, max_size=6)))
    change = truth[None, :] - truth[:, None]
    least = change - draw(st.floats(0, 2))
    most = change + draw(st.floats(0, 2))
    size = draw(st.integers(0, len(truth)))
    below = np.array(draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    above = np.array(draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    return truth, truth[:size] - below, truth[:size] + above, least[:size], most[:size]


@given(measured())
def test_the_bounds_hold_every_surface_whose_differences_are_allowed(
    data: tuple[Floats, Floats, Floats, Floats, Floats],
) -> None:
    truth, low, high, least, most = data
    lower, upper = bounds(low, high, least, most)
    assert np.all(lower <= truth + 1e-9)
    assert np.all(truth <= upper + 1e-9)


@given(measured())
def test_consistent_intervals_break_nothing(
    data: tuple[Floats, Floats, Floats, Floats, Floats],
) -> None:
    _, low, high, least, _ = data
    size = len(low)
    assert violation(low, high, least[:, :size]) == pytest.approx(0.0, abs=1e-9)


@given(VALUES, st.floats(0, 1))
def test_the_violation_is_the_least_slack_that_reconciles_all(
    values: list[float], width: float
) -> None:
    """Values that should not fall by their index, and rise by at most 1 a step."""
    value = np.array(values)
    low, high = value - width, value + width
    step = np.arange(len(value))
    most = np.maximum(step[None, :] - step[:, None], 0.0)
    least = -most.T
    slack = violation(low, high, least)
    pairs = [
        max(low[u] + least[u, v] - high[v], low[v] - high[u] - most[u, v])
        for u in range(len(value))
        for v in range(len(value))
    ]
    assert slack == pytest.approx(max(0.0, *pairs))
    lower, upper = bounds(low, high, least - slack, most + slack)
    assert np.all(lower <= upper + 1e-9)


def test_nothing_measured_bounds_nothing() -> None:
    none = np.zeros(0)
    lower, upper = bounds(none, none, np.zeros((0, 3)), np.zeros((0, 3)))
    assert np.all(np.isneginf(lower))
    assert np.all(np.isposinf(upper))
    assert violation(none, none, np.zeros((0, 0))) == 0.0

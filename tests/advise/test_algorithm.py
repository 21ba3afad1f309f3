import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    AlgorithmChoice,
    Cost,
    InvalidAdviceError,
    MemoryLine,
    choose_algorithms,
    choose_batch,
)

Table = dict[str, dict[str, Cost]]
COSTS = st.builds(Cost, st.floats(0, 10), st.floats(0, 1e10) | st.integers(0, 20).map(float))
OPTIONS = st.dictionaries(st.sampled_from("abcd"), COSTS, min_size=1, max_size=4)
TABLES = st.dictionaries(st.sampled_from(["c1", "c2", "c3", "c4"]), OPTIONS, max_size=4)


def totals(table: Table, names: tuple[str, ...]) -> tuple[float, float]:
    costs = [table[layer][name] for layer, name in zip(table, names, strict=True)]
    return math.fsum(c.seconds for c in costs), math.fsum(c.bytes for c in costs)


def best(table: Table, memory: float) -> float:
    """Least seconds by trying every choice; infinite where none fits."""
    every = (totals(table, names) for names in product(*table.values()))
    return min((seconds for seconds, size in every if size <= memory), default=math.inf)


@given(TABLES, st.data())
def test_the_integer_program_is_brute_force(table: Table, data: st.DataObject) -> None:
    sizes = [totals(table, names)[1] for names in product(*table.values())]
    memory = data.draw(st.sampled_from(sizes) | st.floats(0, 2e10))
    if best(table, memory) == math.inf:
        with pytest.raises(InvalidAdviceError, match="hold the leanest algorithms"):
            choose_algorithms(table, memory)
        return
    choice = choose_algorithms(table, memory)
    assert choice.algorithms.keys() == table.keys()
    assert totals(table, tuple(choice.algorithms.values())) == (choice.seconds, choice.bytes)
    assert choice.bytes <= memory
    assert choice.seconds == pytest.approx(best(table, memory), rel=1e-6, abs=1e-5)


@given(st.dictionaries(st.integers(1, 64), TABLES, max_size=3), st.floats(0.1, 2e10))
def test_batch_and_algorithms_together_are_brute_force(
    tables: dict[int, Table], memory: float
) -> None:
    line = MemoryLine(100, 10)
    rates = []
    for batch, table in tables.items():
        left = memory - line.bytes_at(batch)
        seconds = best(table, left) if left >= 0 else math.inf
        if seconds < math.inf:
            rates.append(batch / seconds if seconds else math.inf)
    if not rates:
        with pytest.raises(InvalidAdviceError, match="hold one of the batches"):
            choose_batch(tables, memory, line)
        return
    chosen = choose_batch(tables, memory, line)
    if chosen.choice.seconds > 1e-3:
        assert chosen.samples_per_second == pytest.approx(max(rates), rel=1e-4)
    assert chosen.choice.bytes + line.bytes_at(chosen.batch_size) <= memory * (1 + 1e-12)


def test_a_case_worked_by_hand() -> None:
    # FFT saves 2 s on the first layer for 6 bytes, Winograd 1 s on the second for 4.
    table = {
        "first": {"gemm": Cost(5, 0), "fft": Cost(3, 6)},
        "second": {"gemm": Cost(4, 0), "winograd": Cost(3, 4)},
    }
    assert choose_algorithms(table, 10).seconds == 6
    assert choose_algorithms(table, 9).algorithms == {"first": "fft", "second": "gemm"}
    assert choose_algorithms(table, 5).algorithms == {"first": "gemm", "second": "winograd"}
    assert choose_algorithms(table, 0) == AlgorithmChoice(
        {"first": "gemm", "second": "gemm"}, 9.0, 0.0
    )


def test_an_answer_that_only_rounding_lets_in_is_not_taken() -> None:
    bound = 1e10
    table = {"a": {"fast": Cost(1, bound * (1 + 1e-9)), "lean": Cost(2, 0)}}
    assert choose_algorithms(table, bound).algorithms == {"a": "lean"}
    assert choose_algorithms(table, bound * (1 + 1e-9)).algorithms == {"a": "fast"}


def test_a_larger_batch_can_lose_its_fast_algorithm() -> None:
    lean, fast = Cost(2.0, 0), Cost(1.0, 500)
    double = {name: Cost(2 * c.seconds, 2 * c.bytes) for name, c in (("l", lean), ("f", fast))}
    tables = {8: {"conv": {"l": lean, "f": fast}}, 16: {"conv": double}}
    line = MemoryLine(100, 10)
    assert choose_batch(tables, 1260, line).samples_per_second == 8
    small = choose_batch(tables, 1259, line)
    assert (small.batch_size, small.samples_per_second) == (8, 8)
    assert choose_batch(tables, 260, line).samples_per_second == 4


def test_a_layer_without_algorithms_is_refused() -> None:
    with pytest.raises(InvalidAdviceError, match="the costs of conv must name at least one"):
        choose_algorithms({"conv": {}}, 1.0)
    with pytest.raises(InvalidAdviceError, match="seconds of gemm for conv must be a finite"):
        choose_algorithms({"conv": {"gemm": Cost(math.nan, 0)}}, 1.0)


def test_a_model_without_layers_takes_nothing() -> None:
    assert choose_algorithms({}, 0.0) == AlgorithmChoice({}, 0.0, 0.0)

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.learning_rate import POWERS, LearningRate, Rule
from raycosttune.errors import InvalidSpaceError

RULES: st.SearchStrategy[Rule] = st.sampled_from(("linear", "sqrt", "none"))
BATCHES = st.integers(1, 10**6)
RATES = st.floats(1e-6, 10)


@given(rule=RULES, batch=BATCHES, rate=RATES)
def test_the_base_rate_holds_at_the_reference_batch(rule: Rule, batch: int, rate: float) -> None:
    recipe = LearningRate(reference_batch=batch, rule=rule).apply({"lr": rate}, batch)
    assert recipe == {"lr": pytest.approx(rate)}


@given(rule=RULES, reference=BATCHES, batch=BATCHES, rate=RATES)
def test_the_rate_follows_the_batch_by_the_rules_power(
    rule: Rule, reference: int, batch: int, rate: float
) -> None:
    scaled = LearningRate(reference_batch=reference, rule=rule).apply({"lr": rate}, batch)["lr"]
    assert scaled == pytest.approx(rate * (batch / reference) ** POWERS[rule])


@given(batch=BATCHES, other=st.integers())
def test_the_rest_of_a_recipe_and_the_recipe_itself_are_kept(batch: int, other: int) -> None:
    recipe: dict[str, object] = {"opt/lr": 1, "width": other}
    scaled = LearningRate(reference_batch=64, key="opt/lr").apply(recipe, batch)
    assert scaled == {"opt/lr": pytest.approx(batch / 64), "width": other}
    assert recipe == {"opt/lr": 1, "width": other}


@pytest.mark.parametrize("rule", ["linear", "sqrt", "none"])
def test_what_was_applied_can_be_undone(rule: Any) -> None:
    declared = LearningRate(reference_batch=64, rule=rule)
    recipe: dict[str, object] = {"lr": 0.1, "width": 8}
    assert declared.undo(declared.apply(recipe, 256), 256) == recipe


@pytest.mark.parametrize("rate", [None, "0.1", True])
def test_a_key_that_names_no_number_is_refused(rate: object) -> None:
    recipe: dict[str, object] = {"width": 8} if rate is None else {"lr": rate, "width": 8}
    with pytest.raises(InvalidSpaceError, match=r"LearningRate\.key must name a number") as caught:
        LearningRate(reference_batch=64).apply(recipe, 128)
    assert f"got 'lr' = {rate!r}" in str(caught.value)
    assert f"The space has {sorted(recipe)}." in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rule", "cubic"),
        ("rule", ["linear"]),
        ("key", ["lr"]),
        ("key", ""),
        ("reference_batch", 10**13),
        ("reference_batch", 0),
        ("reference_batch", True),
        ("reference_batch", 1.0),
    ],
)
def test_a_bad_value_is_named_with_its_rule(name: str, value: object) -> None:
    arguments: dict[str, Any] = {"reference_batch": 64, name: value}
    with pytest.raises(InvalidSpaceError) as caught:
        LearningRate(**arguments)
    assert f"LearningRate.{name} must be " in str(caught.value)
    assert f"got {value!r}" in str(caught.value)

from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.observation import Recipe, recipe_key
from raycosttune.core.proposer import NoHyperparameters, Scored

VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
RECIPES = st.dictionaries(st.text(), VALUES, max_size=4)


@given(recipe=RECIPES)
def test_the_order_of_a_recipe_does_not_matter(recipe: Recipe) -> None:
    assert recipe_key(dict(reversed(recipe.items()))) == recipe_key(recipe)


@given(recipe=RECIPES, name=st.text(), value=st.integers())
def test_different_recipes_have_different_keys(recipe: Recipe, name: str, value: int) -> None:
    other = {**recipe, name: [value]}
    assert recipe_key(other) != recipe_key(recipe)


def test_what_json_lacks_still_has_a_key() -> None:
    assert recipe_key({"path": object}) == '{"path": "<class \'object\'>"}'


@given(st.integers(0, 100))
def test_nothing_to_choose_is_the_empty_recipe(index: int) -> None:
    assert NoHyperparameters().propose(index, [Scored({}, 1.0)]) == {}

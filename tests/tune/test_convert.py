import json
from typing import Any

import numpy as np
import pytest
from ray import tune

from raycosttune.core.observation import Recipe
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidSpaceError, InvalidStateError
from raycosttune.tune.convert import merged, read_param_space
from raycosttune.tune.domain import domain_state, read_domain, read_space, space_state

SPACE = {
    "cluster": {"workers": tune.choice([1, 2])},
    "batch_size": tune.choice([32, 64]),
    "optimizer": {"lr": tune.loguniform(1e-3, 1e-1), "name": "sgd"},
    "data": ["a", "b"],
}


def test_a_space_is_taken_apart_and_put_together() -> None:
    params = read_param_space(SPACE, "cluster/workers", "batch_size")
    assert params.workers == (1, 2)
    assert params.batches == (32, 64)
    assert list(params.domains) == ["optimizer/lr"]
    assert params.constants == {"cluster": {}, "optimizer": {"name": "sgd"}, "data": ["a", "b"]}
    config = params.config(2, 64, {"optimizer/lr": np.float64(0.5)})
    assert config == {
        "cluster": {"workers": 2},
        "batch_size": 64,
        "optimizer": {"lr": 0.5},
    }
    assert type(config["optimizer"]["lr"]) is float


def test_a_key_may_hold_a_slash() -> None:
    params = read_param_space({"a/b": 2, "batch_size": 4}, "a/b", "batch_size")
    assert params.config(2, 4, {}) == {"a/b": 2, "batch_size": 4}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"batch_size": 32}, '"num_workers", got only'),
        ({"num_workers": 1}, '"batch_size", got only'),
        ({"num_workers": tune.grid_search([1, 2]), "batch_size": 32}, '"num_workers".*grid_search'),
        (
            {"num_workers": 1, "batch_size": 32, "a": {"b": tune.grid_search([1])}},
            '"a/b".*grid_search.*tune.choice',
        ),
        ({"num_workers": 1, "batch_size": 32, "a": [tune.choice([1])]}, '"a".*inside a list'),
        ({"num_workers": tune.uniform(1, 2), "batch_size": 32}, '"num_workers" must have finitely'),
        *(
            ({"num_workers": 1, "batch_size": 32, "a": {"b": held}}, '"a/b".*inside a list')
            for held in (
                [{"x": tune.choice([7])}],
                [[tune.choice([1, 2])]],
                ({"x": ({"y": tune.uniform(0, 1)},)},),
                [{"x": tune.grid_search([1])}],
            )
        ),
        (
            {"num_workers": 1, "batch_size": 32, "a": {"grid_search": [1], "y": 1}},
            '"a" must not be a grid_search',
        ),
        (
            {"num_workers": 1, "batch_size": 32, "a/b": tune.choice([1]), "a": {"b": 2}},
            'got "a/b" twice',
        ),
        (
            {"num_workers": 1, "batch_size": 32, "a": {1: tune.choice([1])}},
            'must be texts, got 1 in "a/1"',
        ),
    ],
)
def test_bad_spaces_are_refused_by_name(space: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpaceError, match=message):
        read_param_space(space, "num_workers", "batch_size")


@pytest.mark.parametrize(
    ("value", "is_told"),
    [
        ([0.1, 0.01], True),
        (["sgd", "adam"], True),
        ((0.9, 0.999), False),
        ([64, 64], False),
        ([0.1], False),
        ([], False),
        ([[1], [2]], False),
        ([None, 1], False),
        (list(range(100)), False),
        ("sgd", False),
    ],
)
def test_a_list_that_looks_like_a_choice_is_told_to_be_a_constant(
    value: object, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"num_workers": 2, "batch_size": 4, "net": {"lr": value}}
    params = read_param_space(space, "num_workers", "batch_size")
    assert params.constants["net"] == {"lr": value}
    told = (
        f'"net/lr" is a list and given to each trial as it is: tune.choice({value}) searches over '
        "it, and a tuple is taken as meant."
    )
    assert caplog.messages == [told] * is_told


def test_constants_may_have_any_keys_and_lists() -> None:
    names = {"names": {0: "cat", 1: "dog"}, "layers": [{"x": [1, (2,)]}]}
    params = read_param_space(
        {"num_workers": 1, "batch_size": 8, **names}, "num_workers", "batch_size"
    )
    assert params.constants == {"num_workers": 1, "batch_size": 8, **names}


def test_a_recipe_s_foreign_keys_are_left_out_of_the_config() -> None:
    params = read_param_space(SPACE, "cluster/workers", "batch_size")
    assert params.config(1, 32, {"other": 1}) == {"cluster": {"workers": 1}, "batch_size": 32}


@pytest.mark.parametrize(
    ("cell", "recipe", "is_held"),
    [
        (Allocation(2, 64), {"optimizer/lr": 0.1}, True),
        (Allocation(2, 128), {"optimizer/lr": 0.1}, True),  # 64 a worker, where batch="local"
        (Allocation(3, 64), {"optimizer/lr": 0.1}, False),
        (Allocation(1, 77), {"optimizer/lr": 0.1}, False),
        (Allocation(2, 64), {}, False),
        (Allocation(2, 64), {"optimizer/lr": 0.1, "other": 1}, False),
    ],
)
def test_a_space_holds_its_own_cells_and_recipes(
    cell: Allocation, recipe: Recipe, is_held: bool
) -> None:
    assert read_param_space(SPACE, "cluster/workers", "batch_size").holds(cell, recipe) is is_held


def test_workers_and_batch_need_keys_of_their_own() -> None:
    with pytest.raises(InvalidSpaceError, match="must differ"):
        read_param_space({"n": 1}, "n", "n")


def test_merging_leaves_the_base_as_it_is() -> None:
    base = {"a": {"b": 1, "c": [1]}, "d": 2}
    result = merged(base, {"a": {"b": 3}, "e": 4})
    assert result == {"a": {"b": 3, "c": [1]}, "d": 2, "e": 4}
    result["a"]["c"].append(2)
    assert base == {"a": {"b": 1, "c": [1]}, "d": 2}


@pytest.mark.parametrize(
    "domain",
    [
        tune.choice([1, "two", None, 3.5, True]),
        tune.uniform(0.5, 2),
        tune.quniform(0.5, 2, 0.5),
        tune.loguniform(1e-3, 1e-1),
        tune.qloguniform(0.001, 0.1, 0.001),
        tune.randint(1, 9),
        tune.qrandint(2, 8, 2),
        tune.lograndint(1, 9),
        tune.qlograndint(2, 8, 2),
    ],
)
def test_a_domain_survives_json(domain: Any) -> None:
    state = json.loads(json.dumps(domain_state(domain)))
    again = read_domain(state)
    assert domain_state(again) == state
    assert type(again) is type(domain)
    assert again.is_valid(domain.sample())


def test_a_space_survives_json() -> None:
    params = read_param_space(SPACE, "cluster/workers", "batch_size")
    again = read_space(json.loads(json.dumps(space_state(params))))
    assert again.is_same_search(params)
    assert space_state(again) == space_state(params)


def test_an_unknown_kind_of_domain_is_refused() -> None:
    with pytest.raises(InvalidStateError, match="'vector'"):
        read_domain({"kind": "vector", "log": False, "lower": 0, "upper": 1, "step": None})


FLOAT = {"kind": "float", "log": False, "lower": "x", "upper": 1, "step": None}
WRONG: dict[str, tuple[object, ...]] = {
    "workers": ([], ["x"], "12", [0], [True], None, [10**30]),
    "batches": ([1.5],),
    "paths": ({}, [], {"batch_size": []}, {"batch_size": [1]}),
    "domains": (
        *([], {"optimizer/lr": 1}, {"a": {"kind": "zzz"}}, {"a": FLOAT}),
        *({"a": {"kind": "choice", "values": values}} for values in ([], [1])),
    ),
    "workers_key": ("zz",),
    "batch_key": (5,),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in WRONG for value in WRONG[key]])
def test_a_damaged_space_is_refused(key: str, value: object) -> None:
    state = space_state(read_param_space(SPACE, "cluster/workers", "batch_size"))
    with pytest.raises(InvalidStateError, match="saved"):
        read_space({**state, key: value})


def test_a_space_that_lacks_a_part_is_refused() -> None:
    with pytest.raises(InvalidStateError, match="can't be read"):
        read_space({})

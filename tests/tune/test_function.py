from functools import partial
from typing import Any

import pytest

from raycosttune.errors import InvalidTrainableError
from raycosttune.tune.trainable import function_trainable, torch_trainable


def none() -> None: ...
def one(config: dict[str, Any]) -> None: ...
def default(config: dict[str, Any] | None = None) -> None: ...
def two(config: dict[str, Any], data: list[int]) -> None: ...
def named(config: dict[str, Any], *, data: list[int]) -> None: ...
def several(*arguments: object, **others: object) -> None: ...


class Callable:
    def __call__(self, config: dict[str, Any]) -> None: ...


TAKEN = (one, default, several, partial(two, data=[1]), Callable(), Callable().__call__)


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
@pytest.mark.parametrize("function", TAKEN)
def test_a_function_of_a_config_is_taken(make: Any, function: Any) -> None:
    assert callable(make(function))


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
@pytest.mark.parametrize("function", [two, named])
def test_a_function_that_needs_more_is_refused_when_it_is_wrapped(make: Any, function: Any) -> None:
    with pytest.raises(InvalidTrainableError, match=r"takes one argument, the config") as caught:
        make(function)
    assert f"got {function.__name__}(config: dict" in str(caught.value)
    assert f"Write def {function.__name__}(config):" in str(caught.value)


def test_only_a_loop_of_ray_train_may_take_nothing() -> None:
    nothing: Any = none
    assert callable(torch_trainable(nothing))
    with pytest.raises(InvalidTrainableError, match=r"got none\(\)"):
        function_trainable(nothing)


def test_a_function_that_hides_its_arguments_is_taken() -> None:
    hidden: Any = dict.fromkeys  # a builtin without a signature
    assert callable(function_trainable(hidden))


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
@pytest.mark.parametrize("key", ["", None, 3])
def test_a_key_that_names_nothing_is_refused_when_a_function_is_wrapped(
    make: Any, key: Any
) -> None:
    with pytest.raises(InvalidTrainableError, match=r"workers_key must be a text.*Name the"):
        make(one, workers_key=key)

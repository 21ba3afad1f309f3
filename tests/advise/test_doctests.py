import doctest
import importlib
import pkgutil

import pytest

import raycosttune.advise

MODULES = [
    importlib.import_module(f"raycosttune.advise.{found.name}")
    for found in pkgutil.iter_modules(raycosttune.advise.__path__)
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".")[-1])
def test_the_examples_of_the_docstrings_hold(module: object) -> None:
    name = getattr(module, "__name__", "")
    # The package names some functions as the modules that they are in.
    assert doctest.testmod(importlib.sys.modules[name]).failed == 0  # type: ignore[attr-defined]


def test_every_public_name_has_a_docstring() -> None:
    for name in raycosttune.advise.__all__:
        assert getattr(raycosttune.advise, name).__doc__, name

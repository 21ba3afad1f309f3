import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from ray import tune
from ray.tune.search.sample import Categorical, Domain

from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.optuna import OptunaProposer, Stepped
from raycosttune.tune.distribution import read_distribution, read_distributions


@pytest.mark.parametrize(
    ("domain", "distribution"),
    [
        (tune.uniform(0.5, 2.0), FloatDistribution(0.5, 2.0)),
        (tune.quniform(0.5, 2.0, 0.5), FloatDistribution(0.5, 2.0, step=0.5)),
        (tune.loguniform(1e-4, 1e-1), FloatDistribution(1e-4, 1e-1, log=True)),
        (
            tune.qloguniform(0.5, 8.0, 0.5),
            Stepped(FloatDistribution(0.5, 8.0, log=True), 0.5),
        ),
        (tune.randint(2, 9), IntDistribution(2, 8)),
        (tune.qrandint(2, 9, 1), IntDistribution(2, 8)),
        (tune.qrandint(8, 64, 8), IntDistribution(8, 64, step=8)),
        (tune.lograndint(2, 9), IntDistribution(2, 8, log=True)),
        (tune.qlograndint(8, 64, 8), Stepped(IntDistribution(8, 64, log=True), 8)),
        (tune.choice(["sgd", None, 1, True]), CategoricalDistribution(["sgd", None, 1, True])),
        (tune.choice([np.int64(4), np.float32(0.5)]), CategoricalDistribution([4, 0.5])),
    ],
)
def test_each_tune_domain_has_its_distribution(
    domain: Domain, distribution: BaseDistribution | Stepped
) -> None:
    assert read_distribution("x", domain) == distribution


@given(st.integers(1, 20), st.integers(0, 60), st.integers(1, 20), st.booleans())
def test_quantized_integers_are_those_that_tune_draws(
    lower: int, size: int, step: int, is_log: bool
) -> None:
    upper = max(-(-lower // step) * step, lower) + size + 1
    bounds = (lower, upper) if step == 1 else (-(-lower // step) * step, upper // step * step)
    domain = (tune.qlograndint if is_log else tune.qrandint)(*bounds, step)
    proposer = OptunaProposer({"x": read_distribution("x", domain)})
    grid = range(bounds[0], bounds[1] + (step > 1), step)
    assert {proposer.propose(index, [])["x"] for index in range(5)} <= set(grid)


def test_paths_are_kept() -> None:
    domains = {"model/width": tune.randint(1, 5), "lr": tune.uniform(0, 1)}
    assert list(read_distributions(domains)) == ["model/width", "lr"]


@pytest.mark.parametrize(
    "domain",
    [
        tune.randn(0.0, 1.0),
        tune.qrandn(0.0, 1.0, 0.1),
        tune.sample_from(lambda config: config["y"]),
        Categorical([1, 2]).grid(),
    ],
)
def test_a_domain_without_bounds_is_named_with_a_cure(domain: Domain) -> None:
    with pytest.raises(InvalidSpaceError, match='"model/lr" must be a choice or a bounded range'):
        read_distributions({"model/lr": domain})


@pytest.mark.parametrize("domain", [tune.randint(5, 5), tune.choice([]), tune.uniform(1.0, 0.0)])
def test_an_empty_domain_is_named(domain: Domain) -> None:
    with pytest.raises(InvalidSpaceError, match='"lr" must hold at least one value'):
        read_distribution("lr", domain)


def test_a_choice_between_objects_is_named_with_a_cure() -> None:
    with pytest.raises(InvalidSpaceError, match=r'"layers" must choose between .* by a text'):
        read_distribution("layers", tune.choice([[1, 2], [3]]))


@pytest.mark.parametrize("domain", [tune.qrandint(2, 9, 0), tune.qlograndint(2, 9, 0)])
def test_a_step_of_nothing_is_named(domain: Domain) -> None:
    with pytest.raises(InvalidSpaceError, match=r'"k" must have steps of a whole number.*got 0'):
        read_distribution("k", domain)

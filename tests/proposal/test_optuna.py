import math
from typing import ClassVar

import cloudpickle
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import (
    BaseSampler,
    NSGAIISampler,
    PartialFixedSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import create_trial

from raycosttune.core.proposer import Scored
from raycosttune.errors import InvalidSpaceError, RayCostTuneError
from raycosttune.proposal.optuna import OptunaProposer, SamplerError, SamplerFactory, Stepped

DOMAINS: dict[str, BaseDistribution | Stepped] = {
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "model/width": IntDistribution(8, 64, step=8),
    "model/hidden": Stepped(IntDistribution(4, 256, log=True), 4),
    "decay": Stepped(FloatDistribution(0.1, 100.0, log=True), 0.1),
    "optimizer": CategoricalDistribution(["sgd", "adam", None, 3, True]),
}

recipes = st.fixed_dictionaries(
    {
        "lr": st.floats(1e-4, 1.0),
        "model/width": st.integers(1, 8).map(lambda k: 8 * k),
        "model/hidden": st.integers(1, 64).map(lambda k: 4 * k),
        "decay": st.integers(1, 1000).map(lambda k: min(k * 0.1, 100.0)),
        "optimizer": st.sampled_from(["sgd", "adam", None, 3]),
    }
)
records = st.lists(st.builds(Scored, recipes, st.floats(1e-21, 1e21)), max_size=14)
indices = st.integers(0, 1000)


def random(seed: int) -> BaseSampler:
    return RandomSampler(seed=seed)


@given(indices, records)
def test_the_same_index_and_records_give_the_same_recipe(index: int, known: list[Scored]) -> None:
    first = OptunaProposer(DOMAINS, seed=3).propose(index, known)
    again = OptunaProposer(DOMAINS, seed=3)
    again.propose(index + 1, [])
    assert again.propose(index, known) == first


@given(indices, records, st.integers(0, 9))
def test_a_recipe_lies_in_the_space_and_holds_builtin_values(
    index: int, known: list[Scored], seed: int
) -> None:
    recipe = OptunaProposer(DOMAINS, seed=seed).propose(index, known)
    assert list(recipe) == list(DOMAINS)
    lr, width, hidden, decay, optimizer = recipe.values()
    assert type(lr) is float
    assert 1e-4 <= lr <= 1.0
    assert type(width) is int
    assert width in range(8, 65, 8)
    assert type(hidden) is int
    assert hidden in range(4, 257, 4)
    assert type(decay) is float
    assert 0.1 <= decay <= 100.0
    assert decay / 0.1 == pytest.approx(round(decay / 0.1))
    assert optimizer in ("sgd", "adam", None, 3, True)


@given(indices)
def test_a_proposal_can_be_recorded_and_the_next_one_made(index: int) -> None:
    proposer = OptunaProposer(DOMAINS)
    known: list[Scored] = []
    for k in range(3):
        known.append(Scored(proposer.propose(index + k, known), score=1.0 + k))
    assert proposer.propose(index + 3, known) not in [record.recipe for record in known]


def test_indices_and_seeds_draw_apart() -> None:
    drawn = {
        OptunaProposer(DOMAINS, random, seed).propose(index, [])["lr"]
        for seed in range(5)
        for index in range(5)
    }
    assert len(drawn) == 25


def test_tpe_learns_from_the_scores() -> None:
    known = [Scored({"x": k / 40}, score=1.0 + abs(k / 40 - 0.2) * 10) for k in range(41)]
    proposer = OptunaProposer({"x": FloatDistribution(0.0, 1.0)})
    drawn = [proposer.propose(index, known)["x"] for index in range(40)]
    near = [x for x in drawn if isinstance(x, float) and abs(x - 0.2) < 0.15]
    assert len(near) > 30


def test_the_users_sampler_gets_a_seed_for_each_proposal() -> None:
    seeds: list[int] = []

    def sampler(seed: int) -> BaseSampler:
        seeds.append(seed)
        return RandomSampler(seed=seed)

    proposer = OptunaProposer(DOMAINS, sampler)
    for index in (0, 1, 0):
        proposer.propose(index, [])
    assert seeds[0] == seeds[2] != seeds[1]


@given(indices, st.lists(st.builds(Scored, recipes, st.floats(0.1, 10.0)), min_size=1, max_size=14))
def test_another_proposal_before_changes_nothing(index: int, known: list[Scored]) -> None:
    proposer = OptunaProposer(DOMAINS)
    rescored = [Scored(record.recipe, 1 / record.score) for record in reversed(known)]
    proposer.propose(index, rescored)
    assert proposer.propose(index, known) == OptunaProposer(DOMAINS).propose(index, known)


@pytest.mark.parametrize(
    "sampler",
    [
        None,
        lambda seed: TPESampler(seed=seed, n_startup_trials=3, multivariate=False),
        lambda seed: TPESampler(seed=seed, multivariate=True, group=True),
        lambda seed: PartialFixedSampler({"lr": 0.1}, TPESampler(seed=seed)),
        lambda seed: NSGAIISampler(seed=seed, population_size=4),
        random,
    ],
)
@pytest.mark.parametrize("count", [0, 1, 9, 30])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_recipe_is_the_one_that_a_study_of_optunas_own_asks_for(
    sampler: SamplerFactory | None, count: int
) -> None:
    spaces: dict[str, BaseDistribution] = {
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "momentum": FloatDistribution(0.9, 0.9),
        "width": IntDistribution(8, 64),
    }
    seeds: list[int] = []

    def noted(seed: int) -> BaseSampler:
        seeds.append(seed)
        return sampler(seed) if sampler else TPESampler(seed=seed)

    study, proposer, known = optuna.create_study(), OptunaProposer(spaces, sampler), list[Scored]()
    for index in range(count):
        recipe = proposer.propose(index, known)
        known.append(Scored(recipe, 1.0 + index % 7))
        value = math.log(known[-1].score)
        study.add_trial(create_trial(params=dict(recipe), distributions=spaces, value=value))
    OptunaProposer(spaces, noted).propose(count, [])
    study.sampler = noted(seeds[0])
    assert proposer.propose(count, known) == study.ask(spaces).params


class Meddling(RandomSampler):
    """Notes the trials that it finds, and spoils them."""

    found: ClassVar[list[tuple[float | None, dict[str, object]]]] = []

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> object:
        for past in study.get_trials(deepcopy=False):
            if past.state.is_finished():
                self.found.append((past.value, dict(past.params)))
                past.params.clear()
                past.distributions.clear()
                past.value = 0.0
        return super().sample_independent(study, trial, param_name, param_distribution)


def test_a_sampler_that_spoils_its_trials_finds_the_next_ones_whole() -> None:
    proposer = OptunaProposer({"lr": DOMAINS["lr"]}, lambda _: Meddling())
    records = [Scored({"lr": 0.1}, 1.0), Scored({"lr": 0.2}, math.e)]
    whole = [(0.0, {"lr": 0.1}), (1.0, {"lr": 0.2})]
    for index in range(2):
        Meddling.found.clear()
        proposer.propose(index, records)
        assert Meddling.found == whole


def test_nothing_to_search_is_the_empty_recipe() -> None:
    assert OptunaProposer({}).propose(0, []) == {}


class Broken(RandomSampler):
    def sample_independent(self, *_: object) -> float:
        msg = "no luck"
        raise KeyError(msg)


@pytest.mark.parametrize(
    "sampler", [lambda _: Broken(), lambda _: 1 / 0, lambda _: "tpe", lambda _: None]
)
def test_a_broken_sampler_is_named(sampler: object) -> None:
    proposer = OptunaProposer(DOMAINS, sampler)  # type: ignore[arg-type]
    with pytest.raises(SamplerError, match="the Optuna sampler must propose a recipe") as raised:
        proposer.propose(7, [])
    assert isinstance(raised.value, RayCostTuneError)
    assert "proposal 7" in str(raised.value)


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"lr": 5.0}, "5.0"),
        ({"lr": "0.1"}, "'0.1' is no number for 'lr'"),
        ({"model/width": 12}, "12"),
        ({"model/hidden": 1000}, "1000"),
        ({"decay": math.inf}, "inf"),
        ({"optimizer": "lion"}, "lion"),
    ],
)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")  # Optuna's own, of the same value
def test_a_sampler_that_leaves_the_space_is_refused_before_a_trial_is_paid_for(
    fixed: dict[str, object], said: str
) -> None:
    proposer = OptunaProposer(DOMAINS, lambda seed: PartialFixedSampler(fixed, random(seed)))
    with pytest.raises(SamplerError, match=said):
        proposer.propose(0, [])


@pytest.mark.parametrize(
    "recipe", [{"lr": 5.0}, {}, {"lr": 0.1, "other": 1}, {"lr": "x"}, {"lr": [1]}]
)
def test_a_record_outside_the_space_is_named(recipe: dict[str, object]) -> None:
    proposer = OptunaProposer({"lr": DOMAINS["lr"]})
    with pytest.raises(InvalidSpaceError, match="must lie in the search space"):
        proposer.propose(0, [Scored(recipe, 1.0)])


def test_a_proposer_survives_pickling_by_ray() -> None:
    proposer = OptunaProposer(DOMAINS, lambda seed: RandomSampler(seed=seed), seed=5)
    copy = cloudpickle.loads(cloudpickle.dumps(proposer))
    assert copy.propose(4, []) == proposer.propose(4, [])


def test_a_proposer_pickled_in_mid_sweep_goes_on_as_the_one_that_was_not() -> None:
    proposer, known = OptunaProposer(DOMAINS), list[Scored]()
    for index in range(14):
        known.append(Scored(proposer.propose(index, known), 1.0 + index % 5))
    copy, read = cloudpickle.loads(cloudpickle.dumps((proposer, known)))
    assert copy.propose(14, read) == copy.propose(14, known) == proposer.propose(14, known)


@given(indices, st.lists(st.builds(Scored, recipes, st.floats(0.1, 10.0)), min_size=6, max_size=7))
def test_records_that_share_a_recipe_count_as_records_of_equal_ones(
    index: int, known: list[Scored]
) -> None:
    shared = [*known, *(Scored(record.recipe, 2 * record.score) for record in known)]
    equal = [Scored(dict(record.recipe), record.score) for record in shared]
    proposer = OptunaProposer(DOMAINS)
    assert proposer.propose(index, shared) == proposer.propose(index, equal)


def test_optunas_log_stays_quiet_and_as_loud_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    OptunaProposer(DOMAINS).propose(0, [])
    assert optuna.logging.get_verbosity() == optuna.logging.INFO
    assert capsys.readouterr().err == ""

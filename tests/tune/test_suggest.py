from ray.tune.search.sample import Categorical

from raycosttune.advise import suggest_sweep
from raycosttune.tune import suggest_space
from tests.advise.told import CLUSTER, PROFILE


def test_the_space_holds_what_is_suggested() -> None:
    sweep = suggest_sweep(PROFILE, CLUSTER)
    space = suggest_space(PROFILE, CLUSTER)
    assert space.keys() == {"num_workers", "batch_size"}
    for domain, values in zip(space.values(), (sweep.workers, sweep.batches), strict=True):
        assert isinstance(domain, Categorical)
        assert domain.categories == list(values)


def test_its_keys_are_those_of_the_search() -> None:
    space = suggest_space(PROFILE, CLUSTER, workers_key="n", batch_key="b")
    assert list(space) == ["n", "b"]

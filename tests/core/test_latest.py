from raycosttune.core.latest import KEPT, Latest


class Counter:
    """Counts how often it fits."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, space: str, samples: dict[str, float]) -> tuple[str, float]:
        self.count += 1
        return space, sum(samples.values())


def test_equal_samples_are_fitted_once_and_others_anew() -> None:
    counter = Counter()
    fitted = Latest(counter)
    first = fitted("a", {"x": 1.0})
    assert fitted("a", {"x": 1.0}) is first
    assert fitted("b", {"x": 1.0}) == ("b", 1.0)
    assert fitted("a", {"x": 1.0, "y": 2.0}) == ("a", 3.0)
    assert counter.count == 3


def test_only_the_latest_are_kept() -> None:
    counter = Counter()
    fitted = Latest(counter)
    for k in range(KEPT + 1):
        fitted("a", {"x": float(k)})
    fitted("a", {"x": 1.0})
    assert counter.count == KEPT + 1
    fitted("a", {"x": 0.0})
    assert counter.count == KEPT + 2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.tune.meant import meant, perhaps

NAMES = st.text("abcdeAB12_/-", max_size=8)


@pytest.mark.parametrize(
    ("reported", "metric"),
    [
        ("acc", "accuracy"),
        ("accuracy", "acc"),
        ("Accuracy", "accuracy"),
        ("acuracy", "accuracy"),
        ("accuarcy", "accuracy"),
        ("val-accuracy", "val_accuracy"),
        ("valaccuracy", "val_accuracy"),
        ("eval/acc", "eval/accuracy"),
    ],
)
def test_a_slip_is_told(reported: str, metric: str) -> None:
    assert meant({reported: 0.5, "epoch": 1, "trial_id": 3}, metric) == reported


@pytest.mark.parametrize(
    ("reported", "metric"),
    [
        ("train_loss", "val_loss"),
        ("accuracy", "val_accuracy"),
        ("top1", "top5"),
        ("micro_f1", "macro_f1"),
        ("mse", "rmse"),
        ("bleu", "bleurt"),
        ("mean", "median"),
        ("__", "accuracy"),
        ("time_total_s", "time_total"),
    ],
)
def test_another_metric_that_may_come_more_often_is_no_slip(reported: str, metric: str) -> None:
    assert meant({reported: 0.5, "epoch": 1}, metric) == ""


@pytest.mark.parametrize("value", ["high", None, float("nan"), [0.5]])
def test_what_is_no_number_is_not_meant(value: object) -> None:
    assert meant({"acc": value}, "accuracy") == ""


def test_a_metric_that_is_reported_without_a_number_is_not_misnamed() -> None:
    assert meant({"acc": 0.5, "accuracy": None}, "accuracy") == ""


def test_the_nearest_of_several_is_meant() -> None:
    assert meant({"acc": 0.5, "acuracy": 0.5}, "accuracy") == "acuracy"


@given(st.dictionaries(NAMES, st.floats(0, 1)), NAMES)
def test_what_is_meant_was_reported_under_another_name(
    result: dict[str, float], metric: str
) -> None:
    name = meant(result, metric)
    assert name != metric or name == ""
    assert name in {*result, ""}
    assert (perhaps(name) == "") is (name == "")

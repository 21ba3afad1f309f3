import math

from raycosttune.core.prediction import Prediction


def test_a_prediction_shows_its_bounds() -> None:
    assert str(Prediction(1.0, 2.3456, 3.0)) == "2.35 (1 to 3)"


def test_an_infinite_bound_is_shown_as_unknown() -> None:
    assert str(Prediction(0.0, 1.0, math.inf)) == "1 (0 to ?)"
    assert str(Prediction(-math.inf, 1.0, 2.0)) == "1 (? to 2)"

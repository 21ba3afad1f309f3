import numpy as np
from scipy.special import ndtr

from raycosttune.core.gaussian import CERTAIN, below


def test_it_is_the_exact_chance_up_to_what_doubles_tell_apart() -> None:
    deviations = np.linspace(-3 * CERTAIN, 3 * CERTAIN, 1001).reshape(7, 143)

    found = below(deviations)

    assert found.shape == deviations.shape
    np.testing.assert_allclose(found, ndtr(deviations), rtol=0, atol=1e-18)


def test_what_is_certain_is_exactly_so() -> None:
    np.testing.assert_array_equal(below(np.array([-np.inf, -10.0, 10.0, np.inf])), [0, 0, 1, 1])

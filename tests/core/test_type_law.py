import numpy as np
import pytest

from raycosttune.core.node_type import NodeType
from raycosttune.core.space import Allocation, Space
from raycosttune.core.step_fit import Grid
from raycosttune.core.step_model import PRIOR_MEAN, PRIOR_SD, StepModel
from raycosttune.core.time_surrogate import TimeSurrogate
from raycosttune.core.type_law import along, law_of, pulled, tied_covariance

TYPES = NodeType("slow", 4), NodeType("fast", 4), NodeType("new", 4)
SPACE = Space((1, 2, 4, 8), (32, 64, 128, 256, 512), node_types=TYPES)
KINDS = np.array([[kind.name for kind in TYPES].index(cell.node_type) for cell in SPACE.cells])
SPEED = {"slow": 1.0, "fast": 5.0, "new": 2.0}


def seconds_of(cell: Allocation) -> float:
    """Returns an epoch's time; what a step costs at any batch is no faster on a fast type."""
    compute = cell.batch_size / cell.workers / SPEED[cell.node_type]
    exchange = 0.0 if cell.workers == 1 else 8.0 * (2.5 if cell.nodes > 1 else 1.0)
    return 1e3 * (6.0 + compute + exchange) / cell.batch_size + 2


def timed(*names: tuple[str, int, int]) -> TimeSurrogate:
    """Models what some cells show, all of the slow type among them."""
    cells = [cell for cell in SPACE.cells if cell.node_type == "slow"]
    cells += [SPACE.allocation(n, b, name) for name, n, b in names]
    return TimeSurrogate.of(SPACE, {cell: [seconds_of(cell)] * 3 for cell in cells})


def off(model: TimeSurrogate, name: str) -> float:
    """Returns the median factor by which the epochs of a type are mispredicted."""
    cells = [cell for cell in SPACE.cells if cell.node_type == name]
    logs = [abs(np.log(model.predict(cell).mid / seconds_of(cell))) for cell in cells]
    return float(np.exp(np.median(logs)))


def test_three_cells_of_a_type_tell_its_pace_by_what_the_other_types_show() -> None:
    model = timed(("fast", 1, 32), ("fast", 1, 128), ("fast", 1, 512))
    alone = [SPACE.allocation(1, b, "fast") for b in (32, 128, 512)]
    own = TimeSurrogate.of(SPACE, {cell: [seconds_of(cell)] * 3 for cell in alone})
    assert off(model, "fast") < min(1.4, off(own, "fast"))
    far = [cell for cell in SPACE.cells if cell.node_type == "fast" and cell.workers == 8]
    assert sum(model.sd(cell) for cell in far) < sum(own.sd(cell) for cell in far)


def test_a_type_that_was_not_timed_is_uncertain_and_bounded_by_nothing() -> None:
    model = timed()
    cells = [cell for cell in SPACE.cells if cell.node_type == "new"]
    assert all(model.sd(cell) > 0.7 for cell in cells)
    assert all(model.bounds(cell) == (0.0, np.inf) for cell in cells)
    assert all(not model.is_measured(cell) for cell in cells)
    assert not model.broken


def test_a_guess_of_its_pace_moves_what_is_likely_until_it_is_timed() -> None:
    cell = SPACE.allocation(4, 128, "new")
    samples = timed()._samples
    plain, slower = (
        TimeSurrogate(SPACE, samples, paces).predict(cell).mid
        for paces in ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    )
    assert slower == pytest.approx(plain * np.e, rel=0.02)
    empty = TimeSurrogate(SPACE, {}, (0.0, 0.0, 1.0))
    other = SPACE.allocation(4, 128, "slow")
    assert empty.predict(cell).mid == pytest.approx(empty.predict(other).mid * np.e)


def test_bounds_hold_within_a_type_alone() -> None:
    one, other = (SPACE.allocation(1, 64, name) for name in ("slow", "fast"))
    model = TimeSurrogate.of(SPACE, {one: [100.0], other: [1.0]})
    assert model.slack == pytest.approx(0.1)
    low, high = model.bounds(SPACE.allocation(2, 64, "fast"))
    assert 0.4 < low < high < 1.3


def test_several_types_have_one_joint_covariance() -> None:
    grid = Grid.of(SPACE.cells, KINDS)
    law = law_of(grid.model, grid.types, np.tile(PRIOR_MEAN, (3, 1)))
    joint = tied_covariance(law, law, grid.alike)
    assert np.allclose(joint, joint.T)
    assert np.linalg.eigvalsh(joint).min() > -1e-8
    one = np.flatnonzero(KINDS == 0)
    assert np.allclose(joint[np.ix_(one, one)], (law.slopes[one] * PRIOR_SD**2) @ law.slopes[one].T)
    # What the numbers of a type move is what they are moved by: the covariance itself.
    pull = np.random.default_rng(0).standard_normal(len(KINDS))
    moved = pulled(law, grid.types, pull, 3)
    assert np.allclose(along(law, grid.types, moved), joint @ pull)


def test_one_type_is_the_law_itself() -> None:
    model = StepModel.of(SPACE.cells)
    kinds = np.zeros(len(SPACE.cells), dtype=np.int64)
    law, whole = law_of(model, kinds, PRIOR_MEAN[None]), model.law(PRIOR_MEAN)
    assert (law.values == whole.values).all()
    assert (along(law, kinds, PRIOR_SD[None]) == whole.slopes @ PRIOR_SD).all()

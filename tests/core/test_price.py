import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.frontier import Point, points
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.price import deadline_price, metric_price
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, goal

ONE, TWO = Allocation(1, 64), Allocation(2, 64)
PAIR = Space((1, 2), (64,))
# 10 epochs: 360 s and 0.1 worker-hours on one worker, 200 s and 0.111 worker-hours on two.
JOB = Job({ONE: 36.0, TWO: 20.0}, {64: 10.0})
SLOW, FAST = JOB.record(goal(), ONE, "one"), JOB.record(goal(), TWO, "two")


def point(deadline: float, cost: float, batch: int = 64, *, measured: bool = True) -> Point:
    return Point(Allocation(1, batch), "{}", deadline, deadline, cost, measured)


def priced(
    limit: float | None, *records: TrialRecord, among: list[Point] | None = None
) -> list[str]:
    """Returns what is said of a deadline, with the plan of a deadline that all meet."""
    known = Knowledge(records, PAIR, goal(deadline_seconds=limit), WorkerHours())
    incumbent = known.incumbent or Knowledge(records, PAIR, goal(), WorkerHours()).incumbent
    assert incumbent is not None
    return list(deadline_price(known, incumbent, points(known) if among is None else among))


def last(record: TrialRecord, limits: Goal) -> list[str]:
    """Returns what is said of the last of a metric, on one worker."""
    known = Knowledge([record], Space((1,), (64,)), limits, WorkerHours())
    assert known.incumbent is not None
    return list(metric_price(known, known.incumbent, record.trial_id))


def curve(limits: Goal, *values: float | None) -> list[str]:
    """Returns the same of an hour-long run that showed some values."""
    reports = [Report(float(k), value, 3600 / len(values)) for k, value in enumerate(values, 1)]
    return last(TrialRecord("t", ONE, {}, 0, reports, Ended(EndCause.REACHED)), limits)


def test_a_deadline_that_keeps_a_cheaper_measured_configuration_out_binds() -> None:
    binds, price = priced(250, SLOW, FAST)
    what = "1 worker, batch 64 would be the plan for 0.1 worker-hours"
    assert binds == f"deadline: 250 s binds: without it {what}"
    # The cheaper one needs 110 s more, that is 2 minutes.
    assert price.startswith("price: 2 more minutes of deadline save 0.011")
    assert price.endswith(" worker-hours, from 0.111 to 0.1 (measured)")


def test_a_deadline_beyond_the_cheapest_configuration_does_not_bind() -> None:
    said = ["deadline: 400 s does not bind: the plan would be the same without it"]
    assert priced(400, SLOW, FAST) == said


def test_without_a_deadline_nothing_is_said_of_one() -> None:
    assert priced(None, SLOW, FAST) == []


def test_what_is_only_predicted_is_called_so() -> None:
    known = Knowledge([FAST], PAIR, goal(), WorkerHours())
    seconds = known.time.predict(ONE).mid * known.accuracy.samples("{}", 64).mean
    cost = f"{seconds / 3600:.3g}"
    assert seconds < 400  # two workers are not twice as fast
    binds, price = priced(250, FAST)
    what = f"1 worker, batch 64 is predicted to do for {cost} worker-hours"
    assert binds == f"deadline: 250 s binds: without it {what}"
    assert price.endswith(f" worker-hours, from 0.111 to {cost} (predicted)")


@pytest.mark.parametrize(
    ("limit", "later", "price"),
    [
        (7200, 10800, "price: one more hour of deadline saves 0.011 "),
        (7200, 10801, "price: 2 more hours of deadline save 0.011 "),
        (2500, 2560, "price: one more minute of deadline saves 0.011 "),
        (50, 53.5, "price: 4 more seconds of deadline save 0.011 "),
        (0.5, 0.7, "price: one more second of deadline saves 0.011 "),
    ],
)
def test_the_deadline_is_priced_in_its_own_unit(limit: float, later: float, price: str) -> None:
    _, line = priced(limit, FAST, among=[point(limit, 0.111), point(later, 0.1)])
    assert line == f"{price}worker-hours, from 0.111 to 0.1 (measured)"


def test_the_price_is_that_of_the_cheapest_cell_within_the_unit() -> None:
    later = [point(260, 0.1), point(300, 0.09, 128, measured=False), point(320, 0.01)]
    _, line = priced(250, FAST, among=[point(200, 0.111), *later])
    assert line.endswith(" deadline saves 0.021 worker-hours, from 0.111 to 0.09 (predicted)")


def test_a_predicted_cell_in_time_that_is_cheaper_still_leaves_no_price() -> None:
    in_time = [point(200, 0.111), point(220, 0.05, 128, measured=False)]
    (line,) = priced(250, FAST, among=[*in_time, point(360, 0.1)])
    what = "1 worker, batch 64 would be the plan for 0.1 worker-hours"
    assert line == f"deadline: 250 s binds: without it {what}"
    (line,) = priced(250, FAST, among=[*in_time, point(360, 0.06, measured=False)])
    assert line == "deadline: 250 s does not bind: the plan would be the same without it"


def test_the_last_of_the_metric_is_priced_by_the_curve_of_the_plans_trial() -> None:
    values = (0.5, 0.9, 0.94, 0.95, 0.96, 0.962, 0.966, 0.969, None, 0.97)
    # 0.966 after 7 of 10 epochs is the first within 0.005; the evaluation without a value counts
    # as none.
    expected = ["price: the last 0.005 of accuracy cost 0.3 worker-hours of the 1"]
    assert curve(goal(target=0.97), *values) == expected
    percent = [None if value is None else 100 * value for value in values]
    said = [expected[0].replace("0.005", "0.5")]
    assert curve(goal(target=97.0), *percent) == said
    losses = [None if value is None else 1 - value for value in values]
    loss = Goal(metric="loss", mode="min", target=0.03)
    said = ["price: the last 0.005 of loss cost 0.3 worker-hours of the 1"]
    assert curve(loss, *losses[:-1], 0.03) == said


def test_a_curve_that_shows_no_last_steps_has_no_price() -> None:
    assert curve(goal(), 0.0, 0.0, 1.0) == []
    assert curve(goal(), 0.9, 1.0) == []
    assert curve(goal(), 1.0) == []
    assert curve(goal(target=0.0), -0.5, -0.1, 0.0) == []


def test_a_restart_that_went_back_before_the_target_has_no_price() -> None:
    values = (0.5, 0.999, 0.9995)
    reports = [Report(k + 1.0, value, 10.0) for k, value in enumerate(values)]
    reports += [Report(1.5, 0.5, 10.0, attempt=2), Report(2.0, 1.0, 10.0, attempt=2)]
    record = TrialRecord("t", ONE, {}, 0, reports, Ended(EndCause.REACHED))
    assert last(record, goal()) == []

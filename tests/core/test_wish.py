from raycosttune.core.choice import Start, choose
from raycosttune.core.decision import Finished, Run
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.core.wish import WHY, Wish, wished
from tests.core.drive import Factors, amdahl, goal
from tests.core.told import know

SPACE = Space((1, 2), (64, 128))
JOB = amdahl(SPACE)


def sweep(*wishes: Wish, planned_runs: int = 10, factors: tuple[float, ...] = ()) -> Session:
    limits = goal(planned_runs=planned_runs)
    proposer = Factors(list(factors)) if factors else None
    return Session(SPACE, limits, proposer=proposer, wishes=wishes, clock=lambda: 0.0)


def run(session: Session, name: str) -> Run:
    """Starts a run, which fails."""
    answer = session.ask(name)
    assert isinstance(answer, Run)
    session.tell(name, Ended(EndCause.FAILED))
    return answer


def test_wishes_run_first_in_their_order_each_once() -> None:
    session = sweep(Wish(2, 128), Wish(1, 64), Wish(2, 128))
    cells = [run(session, name) for name in "ab"]
    assert [cell.allocation for cell in cells] == [Allocation(2, 128), Allocation(1, 64)]
    assert [cell.why for cell in cells] == [WHY, WHY]
    assert run(session, "c").why != WHY


def test_what_a_wish_leaves_open_is_filled_by_the_search() -> None:
    free = sweep().ask("a")
    assert isinstance(free, Run)
    batch = free.allocation.batch_size
    assert run(sweep(Wish(batch=batch)), "a").allocation == free.allocation
    other = 64 if batch == 128 else 128
    assert run(sweep(Wish(batch=other)), "a").allocation.batch_size == other
    assert run(sweep(Wish(workers=1)), "a").allocation.workers == 1


def test_a_recipe_is_proposed_with_what_a_wish_fixes() -> None:
    session = sweep(Wish(1, 64, {"factor": 7.0}), Wish(1, 64), factors=(1.0, 2.0))
    assert run(session, "a").recipe == {"factor": 7.0, "lr": 0.1}
    assert session.ask("a") == Run(Allocation(1, 64), {"factor": 7.0, "lr": 0.1}, WHY)
    assert run(session, "b").why != WHY  # the second wish is met by the first run


def test_a_wish_that_no_cell_allows_is_passed_over() -> None:
    known = know(SPACE, JOB, (), limits=goal())
    assert not list(wished(known, [Wish(8, 64)], ()))


def test_a_local_batch_is_wished_as_the_user_reads_it() -> None:
    local = Space((1, 2), (32,), batch="local")
    known = Knowledge((), local, goal(), know(SPACE, JOB, ()).cost)
    (experiment,) = wished(known, [Wish(2, 32)], ())
    assert experiment.allocation == Allocation(2, 64)


def test_no_wish_is_granted_once_nothing_more_can_be_saved() -> None:
    session = sweep(Wish(1, 64), Wish(2, 128), planned_runs=1)
    session.ask("a")
    session.tell("a", JOB.report(session.goal, Allocation(1, 64), {}, 1000))
    session.tell("a", Ended(EndCause.REACHED))
    assert isinstance(session.ask("b"), Finished)


def test_a_wish_with_a_recipe_that_was_tried_elsewhere_is_granted_all_the_same() -> None:
    done = JOB.record(goal(), Allocation(1, 64), "done")
    known = know(SPACE, JOB, (), [done], limits=goal(planned_runs=50))
    experiment = next(wished(known, [Wish(2, 128, dict(done.recipe))], ()))
    start = choose(known, [experiment], Factors([3.0]), None)
    assert isinstance(start, Start)
    assert start.recipe == {"factor": 3.0, "lr": 0.1} | done.recipe


def test_a_copy_of_a_sweep_wishes_the_same() -> None:
    session = sweep(Wish(2, 128))
    assert session.estimate().trials.low >= 1
    state = session.state()
    again = sweep(Wish(2, 128))
    again.load_state(state)
    assert run(again, "a").allocation == Allocation(2, 128)

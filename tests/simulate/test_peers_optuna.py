from collections.abc import Callable
from dataclasses import replace

import pytest
from optuna.trial import TrialState

from raycosttune.core.cost import CostMetric, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.core.space import Space
from raycosttune.simulate import AnalyticWorkload, Noise, Outcome, PeerPolicy, Truth, simulate
from raycosttune.simulate.peer import PeerTrial
from raycosttune.simulate.peers.optuna_constrained import ConstrainedGp, ConstrainedTpe
from raycosttune.simulate.peers.optuna_peer import OptunaPeer
from raycosttune.simulate.peers.optuna_tpe import HyperbandTpe, Tpe

Maker = Callable[[Space, Goal, CostMetric, int], OptunaPeer]
PEERS: list[Maker] = [Tpe, HyperbandTpe, ConstrainedTpe, ConstrainedGp]
GLOBAL = Space((1, 2, 4, 8), (64, 128, 256, 512), max_local_batch=256, excluded=((2, 128),))
LOCAL = Space((1, 2, 4), (32, 64, 128), batch="local", max_workers=2)
COST = WorkerHours()
every_peer = pytest.mark.parametrize("peer", PEERS)


def goal(space: Space) -> Goal:
    free = Goal(target=0.9, metric="accuracy", mode="max")
    fastest = min(Truth(AnalyticWorkload(space), free, COST).seconds.values())
    return replace(free, deadline_seconds=2 * fastest)


def sweep(
    peer: Maker, space: Space, *, seed: int = 0, trials: int = 9
) -> tuple[Outcome, OptunaPeer]:
    aim = goal(space)
    made = peer(space, aim, COST, seed)
    outcome = simulate(
        lambda _: PeerPolicy(made, trials),
        AnalyticWorkload(space),
        cost=COST,
        deadline_seconds=aim.deadline_seconds,
        noise=Noise(time_sd=0.05),
        seed=seed,
    )
    return outcome, made


@every_peer
@pytest.mark.parametrize("space", [GLOBAL, LOCAL])
def test_every_run_is_in_a_cell_that_was_not_run_before(peer: Maker, space: Space) -> None:
    outcome, _ = sweep(peer, space)
    cells = [trial.allocation for trial in outcome.trials]
    assert set(cells) <= set(space.cells)
    assert len(cells) == len(set(cells))


@every_peer
def test_the_same_seed_gives_the_same_sweep(peer: Maker) -> None:
    first, again = (sweep(peer, GLOBAL, seed=3)[0] for _ in range(2))
    assert first.trials == again.trials


@every_peer
def test_the_chosen_cell_reaches_the_target_in_time(peer: Maker) -> None:
    outcome, _ = sweep(peer, GLOBAL)
    assert outcome.last.chosen in Truth(AnalyticWorkload(GLOBAL), goal(GLOBAL), COST).feasible


@every_peer
def test_a_sweep_ends_when_nothing_new_is_proposed(peer: Maker) -> None:
    outcome, _ = sweep(peer, LOCAL, trials=100)
    assert len(outcome.trials) <= len(LOCAL.cells)
    assert outcome.why == "it proposes nothing further"


@every_peer
def test_a_space_of_one_cell_is_run_once(peer: Maker) -> None:
    outcome, _ = sweep(peer, Space((2,), (64,)))
    assert len(outcome.trials) == 1


@pytest.mark.parametrize(("peer", "trials"), [(ConstrainedTpe, 100), (ConstrainedGp, 9)])
def test_a_constraint_is_broken_by_holes_and_by_runs_that_missed(peer: Maker, trials: int) -> None:
    _, made = sweep(peer, GLOBAL, trials=trials)
    reached = {trial.allocation for trial in made.reached}
    told = made._study.trials
    assert any(trial.constraints["hole"] > 0 for trial in told)
    for trial in told:
        cell = made._cell(trial.params)
        assert (trial.constraints["hole"] > 0) == (cell not in GLOBAL.cells)
        if cell in GLOBAL.cells:
            broken = trial.constraints["target"] > 0 or trial.constraints["deadline"] > 0
            assert broken == (cell not in reached)


def test_a_full_grid_has_no_constraint_on_holes() -> None:
    _, made = sweep(ConstrainedTpe, Space((1, 2), (64, 128)))
    assert all(set(trial.constraints) == {"target", "deadline"} for trial in made._study.trials)


def test_a_run_that_missed_is_told_to_tpe_as_dearer_than_any_that_reached() -> None:
    _, made = sweep(Tpe, GLOBAL)
    reached = {trial.allocation for trial in made.reached}
    values = {made._cell(trial.params): trial.value or 0.0 for trial in made._study.trials}
    missed = [value for cell, value in values.items() if cell not in reached]
    assert missed
    assert min(missed) > max(values[cell] for cell in reached)


def test_hyperband_sees_every_run_that_missed_as_pruned() -> None:
    _, made = sweep(HyperbandTpe, GLOBAL)
    reached = {trial.allocation for trial in made.reached}
    states = {made._cell(trial.params): trial.state for trial in made._study.trials}
    assert {cell for cell, state in states.items() if state is TrialState.COMPLETE} == reached


def test_hyperband_prunes_a_run_far_behind_those_before_it() -> None:
    peer = HyperbandTpe(GLOBAL, goal(GLOBAL), COST, 0)
    pruned = 0
    for k in range(12):
        cell = peer.ask()
        assert cell is not None
        trial = PeerTrial(cell, cost=1.0, is_reached=k == 0)
        for epoch in range(1, 10):
            trial.shortfall = k + 1 / epoch
            trial.reports.append(Report(epoch, 0.0, 1.0))
            if peer.prunes(trial):
                pruned += 1
                break
        peer.trials.append(trial)
        peer.tell(trial)
        if pruned:
            break
    assert pruned


def test_a_run_without_a_value_is_not_pruned() -> None:
    peer = HyperbandTpe(GLOBAL, goal(GLOBAL), COST, 0)
    cell = peer.ask()
    assert cell is not None
    assert not peer.prunes(PeerTrial(cell, reports=[Report(1, None, 1.0)]))

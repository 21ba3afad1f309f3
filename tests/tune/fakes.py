"""Small stand-ins for what Ray Tune hands to a scheduler, and the order in which it calls."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.results.journal import Journal, read_journal
from raycosttune.results.rows import run_header_row, run_report_row
from raycosttune.tune.scheduler import CostAwareScheduler
from raycosttune.tune.search import CostAwareSearch

SPACE = {"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([32, 64]), "seed": 1}
GOAL = Goal(metric="accuracy", mode="max", target=0.9)


class FakeTrial:
    """Is a trial with the parts that the scheduler reads."""

    def __init__(self, trial_id: str, config: dict[str, Any], folder: Path) -> None:
        self.trial_id = trial_id
        self.config = config
        self.status = Trial.PENDING
        self.placement_group_factory: Any = None
        self.last_result: dict[str, Any] = {}
        self.error_file = str(folder / f"{trial_id}-error.txt")
        self.storage = SimpleNamespace(
            storage_filesystem=SimpleNamespace(type_name="local"),
            experiment_fs_path=str(folder),
            trial_fs_path=str(folder / trial_id),
            trial_dir_name=None,
        )

    def init_local_path(self) -> None:
        self.storage.trial_dir_name = self.trial_id

    def set_config(self, config: dict[str, Any]) -> None:
        self.config = config

    def update_resources(self, resources: Any) -> None:
        assert self.status != Trial.RUNNING
        self.placement_group_factory = resources

    def update_last_result(self, result: dict[str, Any]) -> None:
        self.last_result = result


class FakeTune:
    """Calls searcher and scheduler as Tune's controller does.

    Args:
        search: The searcher.
        folder: The experiment's folder.
        space: The search space, None where Tune restores.
    """

    def __init__(
        self, search: Searcher, folder: Path, space: dict[str, Any] | None = None, **names: Any
    ) -> None:
        self.searcher = search
        self.search_alg: Any = SimpleNamespace(searcher=search, _experiment=None)
        self.scheduler: Any = CostAwareScheduler()
        self.folder = folder
        self.trials: list[FakeTrial] = []
        self.suggested = 0
        self.factory = names.get("factory")
        self.scheduler.set_search_properties(names.get("metric"), names.get("mode"))
        if space:
            search.set_search_properties(names.get("metric"), names.get("mode"), space)

    def get_live_trials(self) -> set[FakeTrial]:
        return {t for t in self.trials if t.status not in (Trial.TERMINATED, Trial.ERROR)}

    def get_trials(self) -> list[FakeTrial]:
        return self.trials

    def suggest(self, trial_id: str | None = None) -> FakeTrial | Any:
        """Asks for a trial and queues it; returns what the searcher said if it is none."""
        self.suggested += 1
        name = trial_id or f"t{self.suggested}"
        config = self.searcher.suggest(name)
        if not isinstance(config, dict):
            return config
        trial = FakeTrial(name, config, self.folder)
        trial.placement_group_factory = self.factory
        return self.add(trial)

    def add(self, trial: FakeTrial) -> FakeTrial:
        self.trials.append(trial)
        self.scheduler.on_trial_add(self, trial)
        return trial

    def start(self) -> FakeTrial | None:
        """Lets the scheduler choose, and runs the trial."""
        trial: FakeTrial | None = self.scheduler.choose_trial_to_run(self)
        if trial is not None:
            trial.status = Trial.RUNNING
        return trial

    def report(self, trial: FakeTrial, **metrics: Any) -> str:
        """Hands a result to both, as Tune does, and ends or pauses a trial as decided."""
        iteration = int(trial.last_result.get("training_iteration", 0)) + 1
        metrics = {"training_iteration": iteration, "time_this_iter_s": 1.0, **metrics}
        decision: str = self.scheduler.on_trial_result(self, trial, metrics)
        if decision == "STOP":
            metrics["done"] = True
        else:
            self.searcher.on_trial_result(trial.trial_id, metrics)
        trial.last_result = metrics
        if decision == "PAUSE":
            trial.status = Trial.PAUSED
        if decision == "STOP":
            self.stop_trial(trial)
        return decision

    def finish(self, trial: FakeTrial) -> None:
        """Lets the function return: Tune hands out the last result again."""
        trial.last_result = {**trial.last_result, "done": True}
        self.stop_trial(trial)

    def stop_trial(self, trial: FakeTrial) -> None:
        if trial.status == Trial.RUNNING:
            self.scheduler.on_trial_complete(self, trial, trial.last_result)
            self.searcher.on_trial_complete(trial_id=trial.trial_id, result=trial.last_result)
        else:
            self.scheduler.on_trial_remove(self, trial)
            self.searcher.on_trial_complete(trial_id=trial.trial_id)
        trial.status = Trial.TERMINATED

    def fail(self, trial: FakeTrial, error: str, *, again: bool = False) -> None:
        """Lets a trial die, for good or to be tried again."""
        Path(trial.error_file).write_text(error)
        self.scheduler.on_trial_error(self, trial)
        if again:
            trial.status = Trial.PENDING
            trial.last_result = {}
            self.scheduler.on_trial_add(self, trial)
        else:
            self.searcher.on_trial_complete(trial_id=trial.trial_id, result=None, error=True)
            trial.status = Trial.ERROR


def begin(folder: Path, trials: int = 1) -> tuple[FakeTune, list[FakeTrial]]:
    ray_tune = FakeTune(CostAwareSearch(GOAL, max_concurrent=4), folder, SPACE)
    started = [ray_tune.suggest() for _ in range(trials)]
    while ray_tune.start() is not None:
        pass
    return ray_tune, started


def session_of(ray_tune: FakeTune) -> Any:
    return ray_tune.searcher.session  # type: ignore[attr-defined]


def journal(folder: Path) -> list[dict[str, Any]]:
    return read_journal(folder / "raycosttune" / "journal.jsonl")


def write_run(folder: Path, trial_id: str, rows: list[tuple[int, int, float]]) -> None:
    """Writes a run's own journal with rows of attempt, epoch and accuracy."""
    own = Journal(folder / "raycosttune" / "trials" / f"{trial_id}.jsonl")
    own.append(run_header_row(trial_id))
    for attempt, epoch, accuracy in rows:
        report = Report(float(epoch), None, 1.0, 0.0, attempt, "/c")
        own.append(run_report_row(trial_id, report, {"accuracy": accuracy}))

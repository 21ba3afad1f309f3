"""The scheduler that stops trials at the target, and where they can't win any more."""

import logging
import math
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.utils import flatten_dict

from raycosttune.core.decision import Continue, Resize, Stop
from raycosttune.core.observation import TrialRecord
from raycosttune.errors import InvalidTrainableError
from raycosttune.train.keys import PROFILE
from raycosttune.tune.collector import Collector
from raycosttune.tune.folder import local_folder
from raycosttune.tune.move import can_move, fit, move, workers_of
from raycosttune.tune.rebuilt import rebuild
from raycosttune.tune.resources import DriverResources, WorkerResources
from raycosttune.tune.result import last_result
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.sweep import Sweep
from raycosttune.tune.wrapper import unwrapped

logger = logging.getLogger(__name__)
MOST_ERROR_CHARACTERS = 20_000


class CostAwareScheduler(TrialScheduler):
    """Stops and resizes trials as the session of `CostAwareSearch` decides.

    A trial that gets other workers is paused, and goes on from its last checkpoint. Trials that
    pass a limit of the goal without a report are stopped, too.

    It finds the search by itself and keeps no state: Tune does not save a scheduler's. The
    journal lies in `raycosttune/journal.jsonl` of the experiment's folder; where results go
    to remote storage it lies in Tune's local staging folder for the experiment, and
    survives what that folder survives.

    After a restore, a trial that the journal knows to have ended is closed with its
    recorded result and never works again. That holds for failed trials too, whatever
    `resume_errored` says: the search has already counted them.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._metric: str | None = None
        self._mode: str | None = None
        self._collector = Collector()

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: object) -> bool:
        """See ray.tune.schedulers.TrialScheduler.set_search_properties."""
        del spec
        self._metric, self._mode = metric, mode
        return True

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:  # noqa: ANN401 - a proxy
        """See ray.tune.schedulers.TrialScheduler.on_trial_add.

        Raises:
            InvalidTrainableError: If the sweep's search is not a CostAwareSearch, or the
                trainable reads the worker count from another key, can't be profiled, or nobody
                says what the workers of a type of machine need.
        """
        search = _search(tune_controller)
        search.adopt_space(self._metric, self._mode, _config(tune_controller, trial))
        factory: Any = trial.placement_group_factory
        if PROFILE in trial.config and not isinstance(factory, DriverResources):
            raise _no_profiles()
        if isinstance(factory, (DriverResources, WorkerResources)):
            search.adopt_resources(factory, trial.config)
        else:
            search.check_placement()
        sweep, experiment = search.sweep, local_folder(trial.storage)
        sweep.session.num_samples = _samples(tune_controller)
        sweep.add(trial.trial_id, trial.config, experiment)
        if sweep.is_restored and sweep.known(trial.trial_id) is None:
            rebuild(sweep, trial, experiment)
        if sweep.is_restored:
            sweep.note_names(trial.trial_id, flatten_dict(trial.last_result))
        if trial.status in (Trial.TERMINATED, Trial.ERROR):
            last = flatten_dict(trial.last_result)
            sweep.settle(trial.trial_id, last, is_error=trial.status == Trial.ERROR)
        fit(trial, sweep)
        move(trial, sweep)

    def on_trial_result(
        self,
        tune_controller: Any,  # noqa: ANN401 - a proxy
        trial: Trial,
        result: Mapping[str, Any],
    ) -> str:
        """See ray.tune.schedulers.TrialScheduler.on_trial_result."""
        self._collector.sweep_if_due()
        search = _search(tune_controller)
        sweep, name = search.sweep, trial.trial_id
        sweep.observe(name, result, _checkpoint(trial, result))
        able = can_move(trial)
        match sweep.decide(name, free_workers=search.free_workers, can_resize=able):
            case Stop(why=why):
                logger.info("%s stops: %s", name, why)
                return str(TrialScheduler.STOP)
            case Resize() as change:
                logger.info("%s goes on with other workers: %s", name, change.why)
                sweep.resize(name, change)
                self._collector.sweep_after_stop()
                return str(TrialScheduler.PAUSE)
            case Continue():
                return str(TrialScheduler.CONTINUE)

    def on_trial_complete(
        self,
        tune_controller: Any,  # noqa: ANN401 - a proxy
        trial: Trial,
        result: Mapping[str, Any],
    ) -> None:
        """See ray.tune.schedulers.TrialScheduler.on_trial_complete."""
        del tune_controller, trial, result
        self._collector.sweep_after_stop()

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:  # noqa: ANN401 - a proxy
        """See ray.tune.schedulers.TrialScheduler.on_trial_error."""
        _search(tune_controller).sweep.note_error(trial.trial_id, _error_text(trial))
        self._collector.sweep_after_stop()

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:  # noqa: ANN401 - a proxy
        """See ray.tune.schedulers.TrialScheduler.on_trial_remove."""
        _search(tune_controller).sweep.note_removed(trial.trial_id)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:  # noqa: ANN401 - a proxy
        """See ray.tune.schedulers.TrialScheduler.choose_trial_to_run."""
        self._collector.sweep_if_due()
        sweep = _search(tune_controller).sweep
        _stop_late(tune_controller, sweep)
        live = list(tune_controller.get_live_trials())
        live = [trial for trial in live if trial.status != Trial.TERMINATED]
        held = Counter[str]()
        for trial in live:
            if trial.status == Trial.RUNNING:
                held += workers_of(trial, sweep)
        most = {kind.name: kind.max_workers or math.inf for kind in sweep.session.space.types}
        for trial in live:
            if trial.status not in (Trial.PENDING, Trial.PAUSED):
                continue
            asked = held + workers_of(trial, sweep)
            if held and any(count > most.get(kind, 0) for kind, count in asked.items()):
                sweep.note_waiting(trial.trial_id)
            known = sweep.known(trial.trial_id)
            if known is None:
                continue
            if not known.is_live or isinstance(sweep.decide(trial.trial_id), Stop):
                logger.info("%s has ended before and is not run again", trial.trial_id)
                _close(tune_controller, trial, sweep)
        trials: list[Trial] = list(tune_controller.get_trials())
        for trial in trials:
            if trial.status == Trial.PAUSED and move(trial, sweep):
                sweep.go_on(trial.trial_id)
                return trial
        return next((trial for trial in trials if trial.status == Trial.PENDING), None)

    def debug_string(self) -> str:
        """See ray.tune.schedulers.TrialScheduler.debug_string."""
        return "Using cost-aware stopping."


def _samples(tune_controller: Any) -> float:  # noqa: ANN401 - a proxy
    """Returns Tune's `num_samples`, infinite where it is -1 or not told."""
    told = getattr(tune_controller.search_alg, "total_samples", 0)
    return math.inf if told in (0, sys.maxsize) else float(told)


def _search(tune_controller: Any) -> CostAwareSearch:  # noqa: ANN401 - a proxy
    held = tune_controller.search_alg
    search = unwrapped(held, CostAwareSearch)
    if search is None:
        kind = type(getattr(held, "searcher", held)).__name__
        msg = (
            f"CostAwareScheduler must be used with a CostAwareSearch as search_alg, got {kind}. "
            "Pass search_alg=CostAwareSearch(goal)."
        )
        raise InvalidTrainableError(msg)
    return search


def _stop_late(tune_controller: Any, sweep: Sweep) -> None:  # noqa: ANN401 - a proxy
    """Ends what has passed a limit without a report, also what waits in vain for its workers."""
    late = sweep.overdue()
    for trial in list(tune_controller.get_live_trials()) if late else ():
        known = sweep.known(trial.trial_id)
        stop = None if known is None else late.get(known.trial_id)
        if stop is None:
            continue
        if trial.status == Trial.RUNNING:
            logger.info("%s stops: %s", trial.trial_id, stop.why)
            tune_controller.stop_trial(trial)
        elif isinstance(known, TrialRecord) and known.reports:
            logger.info("%s stops while it waits: %s", trial.trial_id, stop.why)
            _close(tune_controller, trial, sweep)


def _no_profiles() -> InvalidTrainableError:
    msg = (
        "profile=True must go with torch_trainable as it returns, got another trainable. Pass "
        "torch_trainable(train_loop), or leave profile out of CostAwareSearch."
    )
    return InvalidTrainableError(msg)


def _config(tune_controller: Any, trial: Trial) -> Mapping[str, Any]:  # noqa: ANN401 - a proxy
    """Returns the search space that Tune keeps, the trial's own config where it has none."""
    experiment = getattr(tune_controller.search_alg, "_experiment", None)
    spec = getattr(experiment, "spec", None) or {}
    config: Mapping[str, Any] = spec.get("config") or trial.config
    return config


def _close(tune_controller: Any, trial: Trial, sweep: Sweep) -> None:  # noqa: ANN401 - a proxy
    """Ends a trial that isn't running, and lets Tune list it with its last result."""
    record = sweep.record(trial.trial_id)
    result = {} if record is None else last_result(record, sweep.session.goal.metric or "")
    storage = trial.storage
    if storage is not None and not storage.trial_dir_name:
        trial.init_local_path()
    if result:
        trial.update_last_result({**trial.last_result, **result, "done": True})
    tune_controller.stop_trial(trial)


def _checkpoint(trial: Trial, result: Mapping[str, Any]) -> str | None:
    name = result.get("checkpoint_dir_name")
    storage = trial.storage
    if storage is None or not isinstance(name, str):
        return None
    return str(Path(storage.trial_fs_path) / name)


def _error_text(trial: Trial) -> str:
    try:
        text = Path(trial.error_file).read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError, AttributeError):
        return ""
    return text[-MOST_ERROR_CHARACTERS:]

"""Live progress of a sweep beside Tune's own."""

import logging
import time
from typing import Any

from ray import tune

from raycosttune.core.session import Session
from raycosttune.report.glance import glance_of, to_come
from raycosttune.report.screen import Screen
from raycosttune.tune.argument import check_search, check_verbose
from raycosttune.tune.search import CostAwareSearch

logger = logging.getLogger(__name__)
PANEL_SECONDS = 0.5
PATIENCE = 20.0  # times what a look or an estimate takes lies between two
WITH_LINES, WITH_REPORTS = 2, 3


class Progress(tune.Callback):
    """Shows budget, deadline, best so far, what runs and why, and what comes next.

    In a terminal, and in a notebook that has ipywidgets, one panel is drawn anew; elsewhere, or
    without rich (the extra `report`), each start, each end and each new best is a line. Give it
    to `tune.run` or to `tune.RunConfig` among the `callbacks`, and `verbose=0` beside it for a
    quiet Tune.

    Args:
        search: The search of the sweep.
        verbose: 0 shows nothing, 1 what is said above; 2 adds the lines to the panel, and 3 a
            line for each report.

    Raises:
        InvalidSpaceError: If the search is none, or `verbose` no whole number from 0 to 3.
    """

    def __init__(self, search: CostAwareSearch, *, verbose: int = 1) -> None:
        check_search(search, CostAwareSearch)
        self._search = search
        self._verbose = check_verbose(verbose)
        self._name = ""
        self._screens: list[Screen] = []
        self._next = self._next_estimate = 0.0
        self._estimated = (-1, "")
        self._is_broken = False

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the terminal behind: Tune saves its callbacks."""
        return {**self.__dict__, "_screens": [], "_next": 0.0, "_next_estimate": 0.0}

    def on_step_end(self, iteration: int, trials: list[Any], **info: object) -> None:
        """See ray.tune.Callback.on_step_end."""
        del iteration, info
        if trials and not self._name:
            self._name = str(getattr(trials[0].storage, "experiment_dir_name", "") or "")
        self._look()

    def on_experiment_end(self, trials: list[Any], **info: object) -> None:
        """See ray.tune.Callback.on_experiment_end."""
        del trials, info
        self._next = 0.0
        self._look()
        for screen in self._screens:
            screen.close()
        self._screens = []

    def _look(self) -> None:
        began = time.monotonic()
        if self._verbose == 0 or self._is_broken or began < self._next:
            return
        try:
            session = self._search.session
            screens = self._opened()
            coming = self._to_come(session) if screens[0].is_live else ""  # no line says it
            began = time.monotonic()
            glance = glance_of(session, name=self._name, to_come=coming)
            for screen in screens:
                screen.show(glance, session)
        except Exception:
            # A picture of a sweep must never end it.
            logger.exception("progress can't be shown any more; the sweep goes on")
            self._is_broken = True
        spent = time.monotonic() - began
        self._next = began + max(PANEL_SECONDS, PATIENCE * spent)

    def _opened(self) -> list[Screen]:
        if not self._screens:
            reports = self._verbose >= WITH_REPORTS
            first = Screen(reports=reports)
            more = first.is_live and self._verbose >= WITH_LINES
            second = [Screen(is_live=False, reports=reports)] if more else []
            self._screens = [first, *second]
        return self._screens

    def _to_come(self, session: Session) -> str:
        """Estimates what is still to come, anew where a trial has started or ended since.

        Tune waits meanwhile, and no trial is stopped: so an estimate that takes long is seldom
        made anew.
        """
        count = sum(1 + (not record.is_live) for record in session.records.values())
        began = time.monotonic()
        if count != self._estimated[0] and began >= self._next_estimate:
            self._estimated = count, to_come(session)
            self._next_estimate = began + PATIENCE * (time.monotonic() - began)
        return self._estimated[1]

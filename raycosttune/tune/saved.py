"""The search on disk: versioned JSON, replaced in one step."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.state import VERSION, check_version
from raycosttune.errors import InvalidStateError
from raycosttune.results.journal import kept_aside
from raycosttune.tune.convert import ParamSpace
from raycosttune.tune.domain import read_space, space_state
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Saved:
    """Is what a search saves beside its arguments.

    Attributes:
        path: The file that it was read from.
        metric: The metric, from the goal or from Tune.
        mode: The mode, likewise.
        params: The search space, None where none had arrived.
        session: The session's own state, None where no trial was asked for.
        aliases: New ids of trials that Tune had forgotten.
    """

    path: Path
    metric: str | None
    mode: str | None
    params: ParamSpace | None
    session: Mapping[str, Any] | None
    aliases: dict[str, str]

    def load_into(self, sweep: Sweep) -> None:
        """Lets a sweep go on from here; what can't be read is kept aside, see the log."""
        if self.session is None:
            return
        try:
            sweep.session.load_state(self.session)
        except InvalidStateError as error:
            say_damaged(self.path, error)
        else:
            sweep.aliases.update(self.aliases)


def write_saved(path: Path, goal: Goal, params: ParamSpace | None, sweep: Sweep | None) -> None:
    """Writes a search's state; a crash leaves the old file or the new one.

    Raises:
        OSError: If the folder can't be written.
    """
    state = {
        "version": VERSION,
        "metric": goal.metric,
        "mode": goal.mode,
        "space": None if params is None else space_state(params),
        "session": None if sweep is None else sweep.session.state(),
        "aliases": {} if sweep is None else sweep.aliases,
    }
    scratch = path.with_name(f".{path.name}.new")
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(state, file, default=str)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def read_saved(path: Path) -> Saved:
    """Reads a search's state.

    Raises:
        InvalidStateError: If it isn't this release's JSON.
        OSError: If the file can't be read.
    """
    try:
        state = json.loads(path.read_bytes())
        check_version(state)
        space = state["space"]
        return Saved(
            path=path,
            metric=state["metric"],
            mode=state["mode"],
            params=None if space is None else read_space(space),
            session=state["session"],
            aliases={str(new): str(old) for new, old in state["aliases"].items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        msg = f"a saved search can't be read: {error} @ {path}"
        raise InvalidStateError(msg) from error


def say_damaged(path: Path, error: Exception) -> None:
    """Keeps a file that can't be read under another name, and says so loudly."""
    logger.error(
        "the saved search can't be read (%s: %s). It is kept as %s; the sweep is rebuilt from "
        "its journal.",
        type(error).__name__,
        error,
        kept_aside(path),
    )

"""The search on disk: versioned JSON with a checksum, replaced in one step."""

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.space import Space
from raycosttune.core.state import VERSION, check_version
from raycosttune.core.value import read_count
from raycosttune.errors import InvalidStateError
from raycosttune.results.journal import kept_aside
from raycosttune.tune.convert import ParamSpace
from raycosttune.tune.domain import read_space, space_state
from raycosttune.tune.setup import goal_with
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)
CHECKSUM = "sha256"
PATTERN = "searcher-state-*.pkl"


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
        workers: Workers that the cluster held, 0 if unknown.
    """

    path: Path
    metric: str | None
    mode: str | None
    params: ParamSpace | None
    session: Mapping[str, Any] | None
    aliases: dict[str, str]
    workers: int

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

    It never raises: the journal holds all that matters, and a disk that is full ends no sweep.
    """
    scratch = path.with_name(f".{path.name}.new")
    try:
        state = {
            "version": VERSION,
            "metric": goal.metric,
            "mode": goal.mode,
            "space": None if params is None else space_state(params),
            "session": None if sweep is None else sweep.session.state(),
            "aliases": {} if sweep is None else sweep.aliases,
            "workers": None if sweep is None else _most(sweep.session.space),
        }
        text = json.dumps(state, default=str)
        with scratch.open("w", encoding="utf-8") as file:
            file.write(json.dumps({CHECKSUM: _checksum(text), **json.loads(text)}))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except Exception as error:  # noqa: BLE001 - a raise would end the sweep
        logger.warning(
            "the search's state can't be saved (%s: %s); its journal holds the same.",
            type(error).__name__,
            error,
        )
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)


def read_saved(path: Path) -> Saved:
    """Reads a search's state.

    Raises:
        InvalidStateError: If it isn't this release's JSON, or was changed since it was written.
        OSError: If the file can't be read.
    """
    try:
        state = json.loads(path.read_bytes())
        check_version(state)
        _check(state)
        space = state["space"]
        return Saved(
            path=path,
            metric=state["metric"],
            mode=state["mode"],
            params=None if space is None else read_space(space),
            session=state["session"],
            aliases={str(new): str(old) for new, old in state["aliases"].items()},
            workers=read_count(state.get("workers")) or 0,
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        msg = f"a saved search can't be read: {error} @ {path}"
        raise InvalidStateError(msg) from error


def saved_states(folder: Path) -> list[Path]:
    """Lists the states that a folder holds, the newest first."""
    return sorted(folder.glob(PATTERN), reverse=True)


def first_readable(paths: Sequence[Path], goal: Goal) -> tuple[Saved, Goal] | None:
    """Returns the first state that can be read, and its goal; None where there is none.

    Those before it are kept under other names, see the log. It never raises: Tune would start
    the experiment over in silence.

    Args:
        paths: The files, in the order in which they are tried.
        goal: The search's own goal, perhaps without metric and mode.
    """
    for path in paths:
        try:
            saved = read_saved(path)
            return saved, goal_with(goal, saved.metric, saved.mode)
        except Exception as error:  # noqa: BLE001 - see above
            say_damaged(path, error)
    if not paths:
        logger.error(
            "no saved search was found; the sweep is rebuilt from its journal and from Tune's "
            "own trials."
        )
    return None


def say_damaged(path: Path, error: Exception) -> None:
    """Keeps a file that can't be read under another name, and says so loudly."""
    logger.error(
        "the saved search can't be read (%s: %s). It is kept as %s; the sweep is rebuilt from "
        "its journal and from Tune's own trials.",
        type(error).__name__,
        error,
        kept_aside(path),
    )


def _most(space: Space) -> int | None:
    """Returns the workers that the cluster held, of all types of machine."""
    most = [kind.max_workers for kind in space.types if kind.max_workers is not None]
    return sum(most) if most else None


def _check(state: dict[str, Any]) -> None:
    """Compares a state with its checksum, which those of earlier releases lack."""
    known = state.pop(CHECKSUM, None)
    if known is not None and known != _checksum(json.dumps(state)):
        msg = "its checksum is wrong: it was changed or damaged since it was written"
        raise InvalidStateError(msg)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

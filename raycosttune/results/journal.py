"""The append-only journal of a sweep: JSON Lines, one row a line, on disk before it counts."""

import json
import logging
import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from raycosttune.errors import InvalidStateError
from raycosttune.results.rows import VERSION, Row

logger = logging.getLogger(__name__)
FOLDER, JOURNAL, KEPT = "raycosttune", "journal.jsonl", ".kept-"


class Journal:
    """Appends rows to a file and waits until the disk has them.

    A disk that is full or a folder that can't be written never ends a sweep: the rows stay
    in memory, the user is warned once, and the next append tries again. Where another sweep
    takes the folder and moves the file aside, the rows follow their file.

    Attributes:
        path: The file, or None as long as it is not known; rows wait in memory until then.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Opens nothing yet; the file is made by the first append."""
        self.path = path
        self._waiting: list[Row] = []
        self._warned = False
        self._file: tuple[int, int] | None = None

    @property
    def waiting(self) -> Sequence[Row]:
        """The rows that are not on disk yet."""
        return tuple(self._waiting)

    def append(self, *rows: Row) -> None:
        """Writes rows, and those that still wait, and waits until the disk has them."""
        self._waiting.extend(rows)
        if self.path is None or not self._waiting:
            return
        text = "".join(json.dumps(row, default=str) + "\n" for row in self._waiting)
        self._follow(self.path)
        try:
            _append_durably(self.path, text.encode())
        except OSError as error:
            if not self._warned:
                logger.warning(
                    "the journal %s can't be written (%s). The sweep goes on and keeps its rows "
                    "in memory; free space or mend the folder, and they will be written.",
                    self.path,
                    error,
                )
            self._warned = True
            return
        self._waiting.clear()
        self._warned = False
        self._file = _file(self.path)

    def _follow(self, path: Path) -> None:
        if self._file is None or _file(path) == self._file:
            return
        asides = path.parent.glob(f"{path.name}{KEPT}*")
        if (moved := next((p for p in asides if _file(p) == self._file), None)) is not None:
            logger.warning(
                "another sweep has taken the folder of %s; this one's journal goes on as %s. "
                "Give each sweep a name of its own.",
                path,
                moved,
            )
            self.path = moved


def read_rows(path: Path | str) -> tuple[Path, list[Row]]:
    """Returns the journal of a sweep and its rows.

    Args:
        path: The experiment's folder, or its journal.

    Raises:
        InvalidStateError: If there is no journal, or it can't be read.
    """
    journal = journal_of(path)
    try:
        rows = read_journal(journal) if journal.is_file() else None
    except (OSError, InvalidStateError) as error:
        msg = f"the journal {journal} can't be read: {error}"
        raise InvalidStateError(msg) from error
    if rows is None:
        msg = (
            f"a sweep must have a journal, found none @ {journal}. Name the folder of an "
            "experiment whose search was a CostAwareSearch, as ~/ray_results/NAME."
        )
        raise InvalidStateError(msg)
    if not rows:
        msg = (
            f"a sweep's journal must hold a header, got an empty file @ {journal}. Its sweep ended "
            "before the first row was on disk: begin it anew."
        )
        raise InvalidStateError(msg)
    return journal, rows


def read_journal(path: Path) -> list[Row]:
    """Reads every row of a journal.

    Args:
        path: The file. One that doesn't exist holds no rows.

    Returns:
        The rows in the order written, headers included. A last line that was torn by a
        crash is left out, and a damaged line with a warning.

    Raises:
        InvalidStateError: If it is no file, a header has an unknown version, or every line
            is damaged; the message names the file and the line.
    """
    if not path.exists():
        return []
    if not path.is_file():
        msg = f"a journal must be a file, got a folder or a device @ {path}. Move it away."
        raise InvalidStateError(msg)
    *lines, last = path.read_bytes().split(b"\n")
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    read = [(number, _row(line)) for number, line in numbered]
    damaged = [number for number, row in read if row is None]
    rows = [(number, row) for number, row in (*read, (len(lines) + 1, _row(last))) if row]
    if damaged:
        _say_damaged(path, damaged, is_all=not rows)
    for number, row in rows:
        if row["row"] == "header" and row.get("version") != VERSION:
            msg = (
                f"a journal's version must be {VERSION}, got {row.get('version')!r} @ "
                f"{path}:{number}. Read it with the release that wrote it."
            )
            raise InvalidStateError(msg)
    return [row for _, row in rows]


def journal_of(path: Path | str) -> Path:
    """Returns the journal of a run's folder; a file is taken as the journal itself."""
    path = Path(path)
    try:
        path = path.expanduser().resolve()
        return path / FOLDER / JOURNAL if path.is_dir() else path
    except (OSError, RuntimeError, ValueError):  # a loop of links, a home that nobody has
        return path  # reading it says what is wrong


def kept_aside(path: Path) -> Path:
    """Moves a file to a free name beside it and returns that name.

    Where it can't be moved it stays, and its own name is returned.
    """
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}{KEPT}{number}")
        try:
            if not aside.exists():
                return path.rename(aside)
        except OSError:
            break
    return path


def _file(path: Path) -> tuple[int, int] | None:
    """Returns which file a path names now, whatever it was called before; None for none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _say_damaged(path: Path, lines: Sequence[int], *, is_all: bool) -> None:
    rule = "a journal's line must be a JSON object with a `row`"
    if is_all:
        msg = f"{rule}, got none @ {path}:{lines[0]}. Name a journal, or remove the file."
        raise InvalidStateError(msg)
    logger.warning(
        "%s; %d damaged lines are left out, the first @ %s:%d", rule, len(lines), path, lines[0]
    )


def _row(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("row"), str) else None


def _append_durably(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a buffer: closing one writes what is left of a row that has failed.
    with path.open("a+b", buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        try:
            _close_torn_line(file, start)
            while data:
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except OSError:
            _truncate(path, start)
            raise


def _close_torn_line(file: FileIO, end: int) -> None:
    """Drops what a crash left of a last line, so that the next row starts a line.

    A whole row that lacks its line break alone has been read, and stays.
    """
    if end == 0:
        return
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    text = file.read(end)
    begin = text.rfind(b"\n") + 1
    if _row(text[begin:]) is None:
        file.truncate(begin)
    else:
        file.write(b"\n")


def _truncate(path: Path, size: int) -> None:
    try:
        if path.stat().st_size > size:
            os.truncate(path, size)
    except OSError:
        logger.debug("a partial row stays in %s", path)

"""Observations in a CSV file: one row for each evaluation of each run."""

import csv
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from raycosttune.core.observation import EndCause, Ended, Recipe, Report, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_amount, read_count, read_real
from raycosttune.errors import InvalidWorkloadError
from raycosttune.results.columns import repeated

NEEDED = ("workers", "batch_size", "epoch", "seconds")
OWN = (*NEEDED, "trial", "nodes", "startup_seconds")
MOST_PROBLEMS = 20


def read_observations(path: Path, metric: str) -> list[TrialRecord]:
    """Reads runs from a CSV file with a header line.

    Args:
        path: The file. Columns `workers`, `batch_size` (global), `epoch`, `seconds` (since the
            run's previous row, or since its workers were asked for) and the metric's are
            needed; `trial`, `nodes` and `startup_seconds` are read where they are there, and
            any other column is a hyperparameter. Without `trial` the rows of one
            configuration are one run.
        metric: Name of the metric's column.

    Returns:
        The runs in the order of their first rows, each ended.

    Raises:
        InvalidWorkloadError: If the file can't be read, lacks a column or has it twice, or holds
            a value of a wrong kind, more fields than columns, or a trial of two configurations;
            all problems are named, each with its line.
    """
    columns, rows = _rows(path)
    _check_columns(columns if rows else [], metric, path)
    records: dict[str, TrialRecord] = {}
    problems: list[str] = []
    for line, texts in rows:
        if any(texts[len(columns) :]):
            rule = f"a row must have {len(columns)} fields, decimals with a point"
            problems.append(f"{rule}, got {len(texts)} @ {path}:{line}")
            continue
        row = dict(zip_longest(columns, texts[: len(columns)], fillvalue=""))
        recipe: Recipe = {
            key: _value(text) for key, text in row.items() if key not in ("", *OWN, metric) and text
        }
        try:
            cell, report = _cell(row), _report(row, metric)
        except ValueError as error:
            problems.append(f"{error} @ {path}:{line}")
            continue
        name = row.get("trial") or f"{cell.workers}x{cell.batch_size} {recipe or ''}".strip()
        record = records.setdefault(name, TrialRecord(name, cell, recipe, len(records)))
        if (record.allocation, record.recipe) != (cell, recipe):
            before, now = record.allocation.named(record.recipe), cell.named(recipe)
            problems.append(f"{name} was {before} before, got {now} @ {path}:{line}")
        elif not record.take(report):
            problems.append(f"epoch {report.epoch:g} of {name} was there before @ {path}:{line}")
    if problems:
        more = len(problems) - MOST_PROBLEMS
        shown = problems[:MOST_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
        raise InvalidWorkloadError("\n".join(shown))
    for record in records.values():
        record.take(Ended(EndCause.FINISHED, "the observations end here"))
    return list(records.values())


def _rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Returns the columns, and the fields of each row with its line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            read = [(reader.line_num, [text.strip() for text in row]) for row in reader if row]
    except (OSError, ValueError, csv.Error) as error:
        msg = f"observations can't be read: {error} @ {path}"
        raise InvalidWorkloadError(msg) from error
    return (read[0][1], read[1:]) if read else ([], [])


def _check_columns(columns: Sequence[str], metric: str, path: Path) -> None:
    needed = (*NEEDED, metric)
    if missing := [name for name in needed if name not in columns]:
        msg = (
            f"observations must have rows with the columns {', '.join(needed)}, "
            f"missing {', '.join(missing)}, got {list(columns)!r:.300} @ {path}. "
            "Separate fields by commas, and name the metric's column by --metric."
        )
        raise InvalidWorkloadError(msg)
    if twice := repeated(columns):
        msg = f"observations must have each column once, got {', '.join(twice)} twice @ {path}"
        raise InvalidWorkloadError(msg)


def _cell(row: Mapping[str, str]) -> Allocation:
    workers, batch = (_count(row, name) for name in ("workers", "batch_size"))
    return Allocation(workers, batch, _count(row, "nodes") if row.get("nodes") else 1)


def _report(row: Mapping[str, str], metric: str) -> Report:
    startup = _amount(row, "startup_seconds") if row.get("startup_seconds") else 0.0
    value = _real(row, metric) if row[metric] else None
    return Report(_amount(row, "epoch"), value, _amount(row, "seconds"), startup)


def _count(row: Mapping[str, str], name: str) -> int:
    number = _number(row[name])
    count = None if number is None or number != int(number) else read_count(int(number))
    if count is None:
        msg = f"{name} must be a whole number of at least 1, got {row[name]!r}"
        raise ValueError(msg)
    return count


def _real(row: Mapping[str, str], name: str) -> float:
    number = _number(row[name])
    if number is None:
        msg = f"{name} must be a finite number, got {row[name]!r}"
        raise ValueError(msg)
    return number


def _amount(row: Mapping[str, str], name: str) -> float:
    amount = read_amount(_real(row, name))
    if amount is None or amount < 0:
        msg = f"{name} must be a number from 0 to 10**15, got {row[name]!r}"
        raise ValueError(msg)
    return amount


def _number(text: str) -> float | None:
    try:
        return read_real(float(text))
    except ValueError:
        return None


def _value(text: str) -> float | str:
    number = _number(text)
    return text if number is None else number

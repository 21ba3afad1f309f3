"""Reads a tidy CSV file and gathers everything that is wrong with it."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raycosttune.errors import InvalidWorkloadError
from raycosttune.results.columns import repeated

MOST_PROBLEMS = 20
MOST = 1e12
CsvRow = dict[str, str]


@dataclass
class TidyFile:
    """Reads one file of a workload.

    Attributes:
        path: The file.
        problems: What was found wrong so far, one sentence each.
    """

    path: Path
    problems: list[str] = field(default_factory=list)

    def rows(self, columns: Sequence[str], workload: str) -> list[tuple[int, CsvRow]]:
        """Returns line numbers and rows; none where a column is missing.

        Args:
            columns: What the header must have, "workload" among them.
            workload: What every row must have in that column.
        """
        try:
            # Spreadsheets begin a file with a byte order mark, which utf-8 would read as text.
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.DictReader(file)
                rows = [(reader.line_num, row) for row in reader]
                header = list(reader.fieldnames or ())
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            self.problems.append(f"it must be a CSV file in UTF-8: {error}")
            return []
        if not header:
            self.problems.append("it is empty")
        elif missing := [name for name in columns if name not in header]:
            self.problems.append(f"columns are missing: {', '.join(missing)}; it has {header}")
        elif twice := repeated(header):
            self.problems.append(f"it has more than one column {', '.join(twice)}")
        elif not rows:
            self.problems.append("it has no rows")
        if self.problems:
            return []
        if others := {row["workload"] for _, row in rows} - {workload}:
            named = sorted(map(str, others))
            self.problems.append(f"its workload must be {workload!r} in every row, got {named}")
        self.problems += [
            f"line {line}: it has more fields than the header" for line, row in rows if None in row
        ]
        return rows

    def number(self, line: int, row: CsvRow, column: str, *, least: float = -math.inf) -> float:
        """Reads a finite number above `least`, NaN where it is none.

        Where there is a least the number is an amount, and at most 10**12.
        """
        text = (row.get(column) or "").strip()
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value <= least:
            rule = "a finite number" if least == -math.inf else f"a number above {least:g}"
        elif least > -math.inf and value > MOST:
            rule = "at most 1e12"
        else:
            return value
        self.problems.append(f"line {line}: {column} must be {rule}, got {text!r}")
        return math.nan

    def count(self, line: int, row: CsvRow, column: str) -> int:
        """Reads a whole number of at least 1, 0 where it is none."""
        value = self.number(line, row, column, least=0)
        if math.isnan(value):
            return 0
        if value != int(value):
            self.problems.append(f"line {line}: {column} must be whole, got {value:g}")
            return 0
        return int(value)

    def check(self) -> None:
        """Raises with every problem found."""
        if self.problems:
            shown = self.problems[:MOST_PROBLEMS]
            more = len(self.problems) - len(shown)
            rest = f"\n  and {more} more" if more else ""
            msg = f"{self.path} can't be replayed:\n  " + "\n  ".join(shown) + rest
            raise InvalidWorkloadError(msg)

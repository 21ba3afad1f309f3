"""When things happened in a sweep, by its journal."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from raycosttune.core.value import read_count, read_real
from raycosttune.report.view import Held
from raycosttune.results.rows import ELAPSED, Row

CLOSE = 0.05  # of a report's seconds: shorter pauses before it are delays of writing


@dataclass
class Times:
    """Says when each trial held which workers.

    Rows say how long the sweep had run when they were written. Those of older journals don't:
    then a trial is taken to start when the row before it was written, and to go on without a
    pause.

    Attributes:
        held: By trial, in order.
        asked: When each trial was asked for, seconds since the sweep began.
        elapsed_seconds: When the last row was written.
        is_timed: Whether any row says when it was written.
        over: Why the search gives no further trial, empty while it may.
    """

    held: dict[str, list[Held]] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    elapsed_seconds: float = 0.0
    is_timed: bool = False
    over: str = ""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Times":
        """Reads rows in the order written; those that lack what they need say nothing."""
        times, seen = cls(), set[tuple[object, ...]]()
        for row in rows:
            at = read_real(row.get(ELAPSED))
            if at is not None:
                times.is_timed = True
                times.elapsed_seconds = max(times.elapsed_seconds, at)
            match row["row"]:
                case "asked" | "profile":
                    times._ask(str(row.get("trial_id")), row, at)
                case "report" | "ended" | "profiled":
                    key = tuple(str(row.get(k)) for k in ("trial_id", "row", "attempt", "epoch"))
                    if key not in seen:
                        seen.add(key)
                        times._hold(str(row.get("trial_id")), row, at)
                case "over":
                    times.over = str(row.get("why", ""))
        return times

    def _ask(self, trial_id: str, row: Row, at: float | None) -> None:
        if trial_id in self.held:
            return
        start = self.elapsed_seconds if at is None else at
        cells = row.get("cells")
        rows = [row, *(cells if isinstance(cells, list) else ())]
        counts = (read_count(part.get("workers")) for part in rows if isinstance(part, dict))
        workers = max((count for count in counts if count is not None), default=1)
        self.asked[trial_id], self.over = start, ""
        self.held[trial_id] = [Held(start, start, workers)]

    def _hold(self, trial_id: str, row: Row, at: float | None) -> None:
        held, seconds = self.held.get(trial_id), read_real(row.get("seconds"))
        if held is None or seconds is None:
            return
        last = held[-1]
        end = last.end + seconds if at is None else max(at, last.end)
        start = max(last.end, end - seconds)
        workers = read_count(row.get("workers")) or last.workers
        if start - last.end <= CLOSE * seconds and workers == last.workers:
            held[-1] = Held(last.start, end, workers)
        elif last.end == last.start:
            held[-1] = Held(start, end, workers)
        else:
            held.append(Held(start, end, workers))
        self.elapsed_seconds = max(self.elapsed_seconds, end)

"""Time, memory and size of a report page of a large sweep, and how soon a browser shows it.

Usage: python benchmarks/report.py [--trials 10000] [--epochs 100] [--json]

The journal is made up: curves that rise and level off, every kind of end. Needs the extra
`report`; the browser is Debian's chromium and playwright, and is left out where they are not there.
"""

import argparse
import json
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Space
from raycosttune.report import read_sweep, write_page
from raycosttune.results.header import header_row
from raycosttune.results.rows import ELAPSED, Row, asked_row, observation_row

SPACE = Space((1, 2, 4, 8, 16), (64, 128, 256, 512, 1024), workers_per_node=8)
GOAL = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=3600, planned_runs=100)
OPENINGS = 5


def rows(trials: int, epochs: int, seed: int = 0) -> Iterator[Row]:
    """Yields the rows of a sweep's journal."""
    rng, now = random.Random(seed), 0.0
    yield {**header_row(GOAL, "node-hours", SPACE), ELAPSED: now}
    for number in range(trials):
        cell, rate = rng.choice(SPACE.cells), 10 ** rng.uniform(-3, -1)
        record = TrialRecord(f"trial_{number:05d}", cell, {"lr": rate, "seed": number}, number)
        yield {**asked_row(record, "reaches the target in time"), ELAPSED: now}
        pace = 20 / cell.workers**0.8 + cell.batch_size / 500
        best = rng.uniform(0.6, 0.93)
        for epoch in range(1, epochs + 1):
            seconds = pace * rng.uniform(0.95, 1.05) + (15 if epoch == 1 else 0)
            now += seconds
            value = best * (1 - 0.95**epoch) + rng.gauss(0, 0.003)
            startup = 15.0 if epoch == 1 else 0.0
            report = Report(float(epoch), value, seconds, startup, checkpoint="/models/c")
            yield {**observation_row(record.trial_id, report), ELAPSED: now}
        cause = rng.choices([EndCause.STOPPED, EndCause.FINISHED, EndCause.FAILED], [6, 3, 1])[0]
        ended = Ended(cause, "can't win any more")
        yield {**observation_row(record.trial_id, ended), ELAPSED: now}


def write(folder: Path, trials: int, epochs: int) -> None:
    """Writes the journal without waiting for the disk at each row."""
    path = folder / "raycosttune" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(trials, epochs))


def opened(page: Path) -> dict[str, float] | None:
    """Opens the page some times: median seconds to its text and to its last figure.

    And those that its main thread computed meanwhile, which a busy machine changes less.
    """
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    text, figures, computed = [], [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(OPENINGS):
            tab = browser.new_page()
            tools = tab.context.new_cdp_session(tab)
            tools.send("Performance.enable", {"timeDomain": "threadTicks"})
            start = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="domcontentloaded")
            text.append(time.perf_counter() - start)
            tab.wait_for_selector("html[data-drawn=yes]", timeout=120_000)
            figures.append(time.perf_counter() - start)
            told = tools.send("Performance.getMetrics")["metrics"]
            computed += [each["value"] for each in told if each["name"] == "TaskDuration"]
            tab.close()
        browser.close()
    medians = (statistics.median(seconds) for seconds in (text, figures, computed))
    return dict(zip(("text", "figures", "computed"), medians, strict=True))


def measured(trials: int, epochs: int) -> dict[str, Any]:
    """Measures one report."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write(run, trials, epochs)
        size = (run / "raycosttune" / "journal.jsonl").stat().st_size
        before, start = time.process_time(), time.perf_counter()
        view = read_sweep(run)
        read = time.perf_counter() - start
        page = write_page(view, Path(folder) / "page.html")
        return {
            "trials": trials,
            "epochs": epochs,
            "journal_mb": round(size / 1e6, 1),
            "read_seconds": round(read, 2),
            "page_seconds": round(time.perf_counter() - start - read, 2),
            "cpu_seconds": round(time.process_time() - before, 2),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
            "page_mb": round(page.stat().st_size / 1e6, 2),
            "opens": opened(page),
        }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measured(arguments.trials, arguments.epochs)
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    for name, value in result.items():
        print(f"{name:>15}  {value}")


if __name__ == "__main__":
    main()

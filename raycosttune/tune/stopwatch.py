"""Times the reports of a Tune function on a clock of its own."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from raycosttune.train import keys


@contextmanager
def timed_reports() -> Iterator[None]:
    """Adds to each report the seconds since the one before, or since the block was entered.

    Tune's own figure won't do: a function may report another under the same name, and Tune
    keeps that. Outside of Tune nothing is added.
    """
    from ray.train._internal.session import get_session  # noqa: PLC0415 - private, read late

    session: Any = get_session()
    report = getattr(session, "report", None)
    if report is None:
        yield
        return
    before = time.monotonic()

    def report_timed(metrics: object, *args: object, **others: object) -> None:
        nonlocal before
        now = time.monotonic()
        seconds, before = now - before, now
        timed = metrics
        if isinstance(metrics, Mapping):
            timed = {**metrics, keys.ITERATION_SECONDS: seconds}
        report(timed, *args, **others)

    session.report = report_timed
    try:
        yield
    finally:
        session.report = report

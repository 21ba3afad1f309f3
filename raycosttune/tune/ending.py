"""Why a trial of Tune's has ended."""

import re
from collections.abc import Sequence
from itertools import dropwhile

from raycosttune.core.decision import Continue, Decision, Resize, Stop, StopCause
from raycosttune.core.memory import says_out_of_memory
from raycosttune.core.observation import EndCause
from raycosttune.tune.meant import perhaps
from raycosttune.tune.notice import SILENT, hint_at

UNRUN = EndCause.STOPPED, "it was removed before it ran"
HALTED = EndCause.STOPPED, "it was stopped while it waited for its workers"
CUT = EndCause.FINISHED, "Tune's own stop ended it"
End = tuple[EndCause, str]
FRAME = re.compile(r'\s+File ".*", line \d+')  # of a traceback
MOST = 500  # characters of what an error says


def failure(error: str) -> End:
    """Returns cause and reason of a trial that failed with an error's text."""
    reason = _said(error.strip().splitlines()) or "it failed"
    if hint := hint_at(error):
        reason = f"{reason.rstrip('.')}; {hint}"
    memory = says_out_of_memory(error)
    return (EndCause.OUT_OF_MEMORY if memory else EndCause.FAILED), reason


def _said(lines: Sequence[str]) -> str:
    """Returns what an error says: all that follows its traceback, else its last line."""
    frames = [place for place, line in enumerate(lines) if FRAME.match(line)]
    rest = lines[frames[-1] + 1 :] if frames else []
    words = " ".join(dropwhile(lambda line: line[:1].isspace(), rest)).split()
    text = " ".join(words) if words else (lines[-1] if lines else "")
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def returned(*, is_silent: bool) -> End:
    """Returns cause and reason of a training function that returned, perhaps without a report."""
    return EndCause.FINISHED, f"the training function returned{f' {SILENT}' if is_silent else ''}"


def ending(decision: Decision, own: End) -> End:
    """Returns cause and reason of a trial that a decision ended, or that ended of its own."""
    match decision:
        case Stop(StopCause.REACHED, why):
            return EndCause.REACHED, why
        case Stop(_, why):
            return EndCause.STOPPED, why
        case Continue() | Resize():
            return own


def without_metric(end: End, told: str, meant: str) -> End:
    """Returns cause and reason of a trial that never reported the metric.

    Where it reported one of nearly that name, another trial would most likely do so, too. One
    that failed may have done so before its first evaluation.

    Args:
        end: Why it ended.
        told: What it reported instead, "" where that is not known.
        meant: What of it has nearly the metric's name, "" for nothing.
    """
    cause, reason = end
    if told:
        reason = f"{reason.rstrip('.')}; it reported {told}"
    if not meant or cause not in (EndCause.FINISHED, EndCause.STOPPED):
        return cause, reason
    return EndCause.MISNAMED, f"{reason}{perhaps(meant)}"

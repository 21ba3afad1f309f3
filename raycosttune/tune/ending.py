"""Why a trial of Tune's has ended."""

from raycosttune.core.decision import Continue, Decision, Resize, Stop, StopCause
from raycosttune.core.memory import says_out_of_memory
from raycosttune.core.observation import EndCause
from raycosttune.tune.notice import SILENT, hint_at

UNRUN = EndCause.STOPPED, "it was removed before it ran"
HALTED = EndCause.STOPPED, "it was stopped while it waited for its workers"
CUT = EndCause.FINISHED, "Tune's own stop ended it"
End = tuple[EndCause, str]


def failure(error: str) -> End:
    """Returns cause and reason of a trial that failed with an error's text."""
    reason = error.strip().splitlines()[-1] if error.strip() else "it failed"
    if hint := hint_at(error):
        reason = f"{reason.rstrip('.')}; {hint}"
    memory = says_out_of_memory(error)
    return (EndCause.OUT_OF_MEMORY if memory else EndCause.FAILED), reason


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

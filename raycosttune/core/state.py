"""Records as plain data, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidStateError

VERSION = 1


def record_to_data(record: TrialRecord) -> dict[str, Any]:
    """Returns a record as JSON-able data."""
    return asdict(record)


def record_from_data(data: Mapping[str, Any]) -> TrialRecord:
    """Reads a record back.

    Raises:
        InvalidStateError: If the data has another shape.
    """
    try:
        ended = data["ended"]
        return TrialRecord(
            trial_id=str(data["trial_id"]),
            allocation=Allocation(**data["allocation"]),
            recipe=dict(data["recipe"]),
            proposal=int(data["proposal"]),
            reports=[Report(**report) for report in data["reports"]],
            ended=None if ended is None else Ended(**{**ended, "cause": EndCause(ended["cause"])}),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"a trial's record can't be read: {error!r} in {data!r}"
        raise InvalidStateError(msg) from error


def check_version(state: object) -> None:
    """Refuses a state that another version wrote.

    Raises:
        InvalidStateError: If the version is not this one's.
    """
    found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
    if found != VERSION:
        msg = f"a state must have version {VERSION}, got {found!r}. Read it with its own release."
        raise InvalidStateError(msg)

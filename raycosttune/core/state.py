"""Records as plain data, and back."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.profile import ProfileRecord, profile_from_data, profile_to_data
from raycosttune.core.space import Allocation
from raycosttune.core.value import (
    checked,
    optional,
    read_amount,
    read_count,
    read_mapping,
    read_real,
    read_text,
    read_whole,
)
from raycosttune.errors import InvalidStateError

VERSION = 1


def record_to_data(record: TrialRecord) -> dict[str, Any]:
    """Returns a record as JSON-able data."""
    return {
        "trial_id": record.trial_id,
        "allocation": record.allocation.data(),
        "recipe": deepcopy(record.recipe),
        "proposal": record.proposal,
        "started": record.started,
        "reports": [dict(vars(report)) for report in record.reports],
        "ended": None if record.ended is None else dict(vars(record.ended)),
        "resized": None if record.resized is None else dict(vars(record.resized)),
    }


class Writer:
    """Writes records as data; one that has ended, and changes no more, is written once."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[TrialRecord, dict[str, Any]]] = {}

    def __call__(self, record: TrialRecord) -> dict[str, Any]:
        """Returns a record as JSON-able data, which nobody may change."""
        same, data = self._written.get(record.trial_id, (None, {}))
        if same is record:
            return data
        data = record_to_data(record)
        if not record.is_live:
            self._written[record.trial_id] = record, data
        return data


def record_from_data(data: Mapping[str, Any]) -> TrialRecord:
    """Reads a record back.

    Raises:
        InvalidStateError: If the data has another shape.
    """
    try:
        ended, resized = data["ended"], data.get("resized")
        record = read_trial({**data, **data["allocation"]})
        record.reports.extend(read_report(report) for report in data["reports"])
        record.ended = None if ended is None else read_ended(ended)
        record.resized = None if resized is None else read_resized(resized)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"a trial's record can't be read: {error!r} in {data!r}"
        raise InvalidStateError(msg) from error
    return record


def read_trial(data: Mapping[str, Any]) -> TrialRecord:
    """Builds a record without reports from one flat mapping of its own and its cell's values.

    Raises:
        KeyError: If a value is missing.
        ValueError: If a value is of the wrong kind.
    """
    return TrialRecord(
        trial_id=checked(data, "trial_id", read_text),
        allocation=Allocation.read(data),
        recipe=dict(checked(data, "recipe", read_mapping)),
        proposal=checked(data, "proposal", read_whole),
        started=optional(data, "started", read_amount),
    )


def read_report(data: Mapping[str, Any]) -> Report:
    """Builds a clean report; raises as `read_trial` does."""
    return Report(
        epoch=checked(data, "epoch", read_real),
        value=optional(data, "value", read_real),
        seconds=checked(data, "seconds", read_real),
        startup_seconds=checked(data, "startup_seconds", read_real),
        attempt=checked(data, "attempt", read_count),
        checkpoint=optional(data, "checkpoint", read_text),
        workers=optional(data, "workers", read_count),
        noise_scale=optional(data, "noise_scale", read_real),
        others=_read_others(data.get("others") or ()),
    ).cleaned()


def _read_others(pairs: Iterable[object]) -> tuple[tuple[str, float], ...]:
    """Reads names and values; raises as `read_trial` does."""
    read = (dict(zip(("name", "value"), pair, strict=True)) for pair in map(_pair, pairs))
    return tuple((checked(p, "name", read_text), checked(p, "value", read_real)) for p in read)


def _pair(value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        msg = f"others must be pairs of a name and a value, got {value!r}"
        raise ValueError(msg)
    return tuple(value)


def read_ended(data: Mapping[str, Any]) -> Ended:
    """Builds a clean end; raises as `read_trial` does."""
    reason, seconds = checked(data, "reason", read_text), checked(data, "seconds", read_real)
    is_starting = data.get("is_starting") is True
    return Ended(EndCause(data["cause"]), reason, seconds, is_starting).cleaned()


def read_resized(data: Mapping[str, Any]) -> Resized:
    """Builds a change of workers; raises as `read_trial` does."""
    workers, attempt = (checked(data, key, read_count) for key in ("workers", "attempt"))
    return Resized(workers, attempt, checked(data, "reason", read_text))


def _profile_to_data(record: ProfileRecord) -> dict[str, Any]:
    ended = None if record.ended is None else asdict(record.ended)
    return {**profile_to_data(record), "ended": ended}


def _profile_from_data(data: Mapping[str, Any]) -> ProfileRecord:
    record, ended = profile_from_data(data), data["ended"]
    if ended is not None:
        record.take(read_ended(ended))
    return record


def session_to_data(
    records: Iterable[Mapping[str, Any]],
    profiles: Iterable[ProfileRecord],
    why: Mapping[str, str],
    elapsed_seconds: float,
    basis: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Returns a session's state as JSON-able data; its records are such already."""
    return {
        "version": VERSION,
        "elapsed_seconds": elapsed_seconds,
        "records": list(records),
        "profiles": [_profile_to_data(profile) for profile in profiles],
        "why": dict(why),
        "basis": basis,
    }


@dataclass(frozen=True)
class SessionState:
    """Is a session's state, read and checked; see `session_to_data`."""

    records: dict[str, TrialRecord]
    profiles: dict[str, ProfileRecord]
    why: dict[str, str]
    elapsed_seconds: float
    basis: tuple[int, tuple[str, ...]] | None = None


def session_from_data(state: Mapping[str, Any]) -> SessionState:
    """Reads a session's state; one that was written before there were profiles has none.

    Raises:
        InvalidStateError: If it can't be read.
    """
    check_version(state)
    try:
        records = [record_from_data(data) for data in state["records"]]
        profiles = [_profile_from_data(data) for data in state.get("profiles", ())]
        elapsed = checked(state, "elapsed_seconds", read_amount)
        basis = _basis_from_data(state.get("basis"))
        why = {str(key): str(value) for key, value in state["why"].items()}
    except InvalidStateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"a state must have records, elapsed_seconds and why, got {error!r}"
        raise InvalidStateError(msg) from error
    return SessionState(
        {record.trial_id: record for record in records},
        {profile.trial_id: profile for profile in profiles},
        why,
        elapsed,
        basis,
    )


def _basis_from_data(data: Mapping[str, Any] | None) -> tuple[int, tuple[str, ...]] | None:
    """Reads how many trials had begun and which of them had not ended; see `Basis`."""
    if data is None:
        return None
    return checked(data, "trials", read_whole), tuple(map(str, data["without"]))


def check_version(state: object) -> None:
    """Refuses a state that another version wrote.

    Raises:
        InvalidStateError: If the version is not this one's.
    """
    found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
    if found != VERSION:
        msg = f"a state must have version {VERSION}, got {found!r}. Read it with its own release."
        raise InvalidStateError(msg)

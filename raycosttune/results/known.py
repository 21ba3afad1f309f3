"""What an earlier sweep brought to a sweep, as a row of its journal."""

from collections.abc import Iterable, Mapping
from typing import Any

from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.prior import Prior
from raycosttune.core.profile import ProfileRecord, profile_from_data, profile_to_data
from raycosttune.core.state import record_from_data, record_to_data
from raycosttune.core.value import checked, read_real
from raycosttune.errors import InvalidStateError
from raycosttune.results.rows import Row

KNOWN = "known"


def known_row(prior: Prior) -> Row:
    """Returns the row of what a sweep began with."""
    return {
        "row": KNOWN,
        "samples": prior.samples,
        "is_elsewhere": prior.is_elsewhere,
        "records": [record_to_data(record) for record in prior.records],
        "profiles": [profile_to_data(profile) for profile in prior.profiles],
    }


def read_known(rows: Iterable[Row]) -> Prior | None:
    """Returns what a sweep began with by its journal; None where it began with nothing.

    Raises:
        InvalidStateError: If it can't be read.
    """
    row = next((row for row in rows if row["row"] == KNOWN), None)
    if row is None:
        return None
    try:
        return Prior(
            records=tuple(map(record_from_data, row["records"])),
            profiles=tuple(map(_profile, row["profiles"])),
            samples=checked(row, "samples", read_real),
            is_elsewhere=row["is_elsewhere"] is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"what the sweep began with can't be read: {error!r} in {row!r:.300}"
        raise InvalidStateError(msg) from error


def _profile(data: Mapping[str, Any]) -> ProfileRecord:
    record = profile_from_data(data)
    if record.is_live:
        record.take(Ended(EndCause.STOPPED, "its sweep broke off"))
    return record

"""What whoever drives a session can do for it beyond starting and stopping runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Abilities:
    """Says how a sweep may be planned.

    Attributes:
        profile: Whether steps in several cells can be timed at one start; then the whole bill
            is planned by what is likely.
        resize: Whether a running trial may change its workers; counts only with profiles.
    """

    profile: bool = False
    resize: bool = False

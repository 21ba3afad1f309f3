"""The plan of an earlier sweep, from its journal alone."""

from dataclasses import dataclass
from typing import Any

from raycosttune.core.plan import Plan


@dataclass(frozen=True)
class PastPlan(Plan):
    """Is a plan of an earlier sweep.

    Attributes:
        config: The values that the search chose, nested as its space. The constants of the space
            are in no journal: they belong beside it. None where the journal is older than that.
    """

    config: dict[str, Any] | None = None

"""What a session knows at one moment, and what is worth doing by that."""

import math
from functools import cached_property

from raycosttune.core.abilities import Abilities
from raycosttune.core.choice import experiments, has_recipes
from raycosttune.core.experiment import Experiment
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.planner import Planner
from raycosttune.core.profile import Profile
from raycosttune.core.profiling import choose_profile
from raycosttune.core.proposer import Proposer


class Moment:
    """Works out each answer when it is first asked for, and once.

    Args:
        known: What the records say.
        proposer: Proposes the other hyperparameters.
        abilities: What whoever drives the session can do.
    """

    def __init__(self, known: Knowledge, proposer: Proposer, abilities: Abilities) -> None:
        self.known = known
        self._proposer, self._abilities = proposer, abilities
        self._profiles: dict[int | None, Profile | None] = {}

    @cached_property
    def planner(self) -> Planner | None:
        """Plans the whole bill, where profiles can be made and an epoch time is known."""
        can_plan = self._abilities.profile and bool(self.known.cells)
        if not can_plan or self.known.time.is_empty:
            return None
        recipes, can_resize = has_recipes(self._proposer), self._abilities.resize
        return Planner(self.known, recipes=recipes, can_resize=can_resize)

    @cached_property
    def ranked(self) -> list[Experiment]:
        """The runs that pay, best first."""
        return experiments(self.known, self._proposer, self.planner)

    def profile(self, free_workers: int | None) -> Profile | None:
        """Returns the profile to make with so many free workers, None where none can or pays."""
        if not self._abilities.profile:
            return None
        if free_workers not in self._profiles:
            most = math.inf if free_workers is None else free_workers
            self._profiles[free_workers] = choose_profile(self.known, self.planner, most)
        return self._profiles[free_workers]

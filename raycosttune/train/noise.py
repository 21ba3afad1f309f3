"""Measures the gradient noise scale from gradients as they are exchanged anyway."""

from dataclasses import dataclass

import torch

from raycosttune.core.noise_scale import NoiseTerms
from raycosttune.train.step import Step

EVERY = 10


@dataclass(frozen=True)
class Look:
    """Is what was seen of one step; the squares may still be on their way from the device."""

    step: Step
    batches: float
    weight: float
    local: torch.Tensor
    whole: torch.Tensor

    def terms(self) -> NoiseTerms:
        """Returns this worker's terms; waits for the device."""
        square, step = float(self.whole), self.step
        # What was exchanged with this weight was the mean gradient up to that factor.
        scale = self.weight / step.fraction if step.fraction else 0.0
        own = scale**2 * float(self.local) if scale else 0.0
        return NoiseTerms(
            local=self.batches * step.total * step.fraction * own,
            whole=self.batches * step.total * square,
            squares=square,
            inverses=1 / (self.batches * step.total),
            freedom=step.workers - 1,
            steps=1,
        )


class NoiseMeter:
    """Looks at every tenth exchange; a look costs two passes over the gradient.

    Sums stay on the device until they are read, so that no step waits for them.

    Args:
        every: Exchanges from one look to the next.
    """

    def __init__(self, every: int = EVERY) -> None:
        self._every = every
        self._count = 0
        self._terms = NoiseTerms()
        self._local: list[torch.Tensor] = []
        self._whole: list[torch.Tensor] = []
        self._pending: tuple[Step, float, float] | None = None
        self._seen: list[Look] = []

    @property
    def looks(self) -> bool:
        """Whether the present exchange is looked at."""
        return self._count % self._every == 0

    def see_local(self, gradient: torch.Tensor) -> None:
        """Takes in a bucket of this worker's own mean gradient."""
        self._local.append(_square(gradient))

    def see_whole(self, gradient: torch.Tensor) -> None:
        """Takes in a bucket of the exchanged gradient; may be called from any thread."""
        self._whole.append(_square(gradient))

    def end(self, step: Step, batches: float, weight: float) -> None:
        """Notes that the last bucket is being exchanged.

        Args:
            step: The last part that went into the gradient.
            batches: How many whole batches did, where the loop accumulates by itself.
            weight: Factor of this worker's gradient in the sum.
        """
        self._pending = (step, batches, weight)

    def settle(self) -> None:
        """Notes that the backward pass is over, and every bucket there."""
        if self._pending is None:
            return
        step, batches, weight = self._pending
        if self._whole and step.workers > 1 and step.is_full:
            look = Look(step, batches, weight, sum_of(self._local), sum_of(self._whole))
            self._seen.append(look)
        self._pending, self._local, self._whole = None, [], []
        self._count += 1

    def add(self, terms: NoiseTerms) -> None:
        """Takes in terms that were found elsewhere."""
        self._terms += terms

    def read(self) -> NoiseTerms:
        """Returns this worker's terms since the last reading, and begins anew."""
        self.settle()
        terms = self._terms
        for look in self._seen:
            terms += look.terms()
        self._terms, self._seen = NoiseTerms(), []
        return terms


def sum_of(squares: list[torch.Tensor]) -> torch.Tensor:
    """Returns the sum of the squares of all buckets."""
    return torch.stack(squares).sum()


def _square(gradient: torch.Tensor) -> torch.Tensor:
    flat = gradient.detach()
    norm: torch.Tensor = torch.linalg.vector_norm(
        flat, dtype=torch.float64 if flat.is_cpu else None
    )
    return norm.square()

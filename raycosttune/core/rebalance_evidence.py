"""How probable measured seconds are where workers share a law, in closed form."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats, Ints

# Deviations of log seconds that one sample may have, and the logs' mean and deviation.
NOISES, NOISE, NOISE_LOG_SD = np.geomspace(0.002, 0.35, 16), 0.05, 1.0
CERTAIN = 0.05  # the noise is at least its quantile here, as good as certainly


@dataclass(frozen=True)
class Noise:
    """Is the noise of one sample.

    Attributes:
        deviation: Of log seconds, the geometric mean over what is probable.
        least: What it certainly is.
        evidence: Log probability of the samples, averaged over what the noise may be.
    """

    deviation: float
    least: float
    evidence: float


@dataclass(frozen=True)
class Terms:
    """Holds sums over samples, all that fitting a law to them needs; they add up over workers.

    A law is log seconds at k knots, prior mean + root @ z with z standard normal, for each
    of t temperaments; a sample is features @ law with independent noise of one variance.

    Attributes:
        squares: Sums of (features @ root)^2, shape (..., t, k, k).
        pulls: Sums of (features @ root) * (log seconds off the mean), shape (..., t, k).
        total: Sums of (log seconds off the mean)^2, shape (..., 1).
        count: Numbers of samples, shape (..., 1).
    """

    squares: Floats
    pulls: Floats
    total: Floats
    count: Floats

    @classmethod
    def of(cls, workers: Ints, features: Floats, off: Floats, among: int) -> "Terms":
        """Returns the sums of each worker.

        Args:
            workers: Whose each sample is, shape (m,).
            features: How a sample depends on z, shape (m, t, k).
            off: Log seconds off the prior mean, shape (m,).
            among: Number of workers.
        """
        one_hot = (workers == np.arange(among)[:, None]).astype(np.float64)
        return cls(
            np.einsum("wm,mti,mtj->wtij", one_hot, features, features, optimize=True),
            np.einsum("wm,mti,m->wti", one_hot, features, off, optimize=True),
            (one_hot @ off**2)[:, None],
            one_hot.sum(axis=1)[:, None],
        )

    def joined(self, groups: Sequence[Collection[int]]) -> "Terms":
        """Returns the sums of groups of workers; an empty one has none."""
        of = np.array([[float(w in group) for w in range(len(self.count))] for group in groups])
        return Terms(*(np.tensordot(of, each, axes=1) for each in self.parts))

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The four sums."""
        return self.squares, self.pulls, self.total, self.count

    def evidence(self, variance: float, odds: Floats) -> Floats:
        """Returns the log probability of the samples, up to a constant that all splits share.

        Args:
            variance: Of the noise.
            odds: Log prior probability of each temperament, shape (t,).

        References:
            Rasmussen & Williams 2006, equation 2.30, by the matrix determinant lemma.
        """
        return np.asarray(np.logaddexp.reduce(self._each(variance) + odds, axis=-1))

    def _each(self, variance: float) -> Floats:
        lower = np.linalg.cholesky(self.squares / variance + np.eye(self.pulls.shape[-1]))
        part = np.linalg.solve(lower, self.pulls[..., None])[..., 0]
        log_det = 2 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        misfit = (self.total - (part**2).sum(axis=-1) / variance) / variance
        return np.asarray(-(self.count * np.log(variance) + log_det + misfit) / 2)

    def posterior(self, variance: float, odds: Floats, roots: Floats) -> tuple[Floats, Floats]:
        """Returns mean and variance of log seconds at the knots, off the prior mean.

        Args:
            variance: Of the noise.
            odds: Log prior probability of each temperament, shape (t,).
            roots: Of the prior covariances, shape (t, k, k).

        Returns:
            Two arrays of shape (..., k).
        """
        scores = self._each(variance) + odds
        weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))[..., None]
        lower = np.linalg.cholesky(self.squares / variance + np.eye(self.pulls.shape[-1]))
        spread = np.linalg.solve(lower, np.swapaxes(roots, -1, -2))
        part = np.linalg.solve(lower, self.pulls[..., None] / variance)
        means = (np.swapaxes(spread, -1, -2) @ part)[..., 0]
        mean = (weights * means).sum(axis=-2)
        among = (means - mean[..., None, :]) ** 2
        return mean, (weights * ((spread**2).sum(axis=-2) + among)).sum(axis=-2)


def estimate_noise(terms: Terms, odds: Floats) -> Noise:
    """Estimates the noise of one sample from groups of workers, each with one law.

    Args:
        terms: Of the groups.
        odds: Log prior probability of each temperament, shape (t,).
    """
    values, vectors = np.linalg.eigh(terms.squares)  # in these terms every level is cheap
    turned = (np.swapaxes(vectors, -1, -2) @ terms.pulls[..., None])[..., 0] ** 2
    values, turned = np.maximum(values, 0)[..., None, :], turned[..., None, :]
    level = (NOISES**2)[:, None]
    misfit = (terms.total[..., None] - (turned / (level + values)).sum(axis=-1)) / NOISES**2
    log_det = np.log1p(values / level).sum(axis=-1)
    each = -(terms.count[..., None] * np.log(NOISES**2) + log_det + misfit) / 2
    scores = np.logaddexp.reduce(each + odds[:, None], axis=-2).sum(axis=0)
    scores -= ((np.log(NOISES) - np.log(NOISE)) / NOISE_LOG_SD) ** 2 / 2
    evidence = float(np.logaddexp.reduce(scores))
    weights = np.exp(scores - evidence)
    least = NOISES[np.searchsorted(np.cumsum(weights), CERTAIN)]
    return Noise(float(np.exp(weights @ np.log(NOISES))), float(least), evidence)

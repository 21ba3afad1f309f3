"""Numbers, runs and what they count as a reader sees them."""

from collections.abc import Callable, Mapping, Sequence

MOST_DIGITS = 17  # these tell any two floats apart
DECIMALS_BELOW = 10


def told_apart(*values: float, digits: int = 3) -> tuple[str, ...]:
    """Writes numbers that a sentence compares: unequal ones never look equal.

    Args:
        values: The numbers.
        digits: Significant digits where they suffice.
    """
    texts = tuple(f"{value:.{digits}g}" for value in values)
    while len(set(texts)) < len(set(values)) and digits < MOST_DIGITS:
        digits += 1
        texts = tuple(f"{value:.{digits}g}" for value in values)
    return texts


def whole(seconds: float) -> str:
    """Writes seconds, with decimals only where they are few."""
    return f"{seconds:.0f}" if seconds >= DECIMALS_BELOW else f"{seconds:.2g}"


def spanned(values: Sequence[float], written: Callable[[float], str]) -> str:
    """Writes the least and the largest of some numbers, once where they read the same."""
    low, high = written(min(values)), written(max(values))
    return low if low == high else f"{low} to {high}"


def counted(count: float, noun: str) -> str:
    """Writes a number of things: 1 trial, 2 trials."""
    return f"{count:g} {noun}{'' if count == 1 else 's'}"


def described(
    workers: int, batch_size: int, recipe: Mapping[str, object], node_type: str = ""
) -> str:
    """Writes a configuration: 2 workers, batch 64, lr=0.0316."""
    named, held = listed(recipe), f"{counted(workers, 'worker')}{of_type(node_type)}"
    return f"{held}, batch {batch_size}{f', {named}' if named else ''}"


def of_type(node_type: str) -> str:
    """Writes the type of machine behind workers, nothing where there is but one."""
    return f" of {node_type}" if node_type else ""


def listed(recipe: Mapping[str, object]) -> str:
    """Writes hyperparameters: lr=0.0316, width=64."""
    return ", ".join(f"{name}={_short(value)}" for name, value in recipe.items())


def _short(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if text.isprintable() else repr(value)  # a sentence stays on its line

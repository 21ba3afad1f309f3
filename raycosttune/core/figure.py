"""Numbers as a reader sees them."""

MOST_DIGITS = 17  # these tell any two floats apart


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

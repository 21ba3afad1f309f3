"""Sums of many numbers that grow one by one and lose no digit."""


def plus(parts: tuple[float, ...], number: float) -> tuple[float, ...]:
    """Adds a number to a sum.

    Args:
        parts: Numbers of which no digits overlap, by size; `math.fsum` rounds their sum once.
        number: A finite one.

    Returns:
        Likewise; there are never more than a few dozen.

    References:
        Shewchuk 1997, Grow-Expansion.
    """
    found = []
    for part in parts:
        large, small = (number, part) if abs(number) >= abs(part) else (part, number)
        number = large + small
        if rest := small - (number - large):
            found.append(rest)
    return *found, number

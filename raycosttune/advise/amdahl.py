"""Amdahl's law, and the part of a step that workers do not share."""

from raycosttune.advise.quantity import amount, count, part, positive, refuse


def amdahl_speedup(workers: int, serial_part: float) -> float:
    """Returns 1 / (s + (1 - s) / G).

    Args:
        workers: G.
        serial_part: s, the part of one worker's step that more workers do not shorten.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Amdahl 1967.

    >>> round(amdahl_speedup(4, 0.1), 4)
    3.0769
    """
    serial = part("serial_part", serial_part)
    return 1 / (serial + (1 - serial) / count("workers", workers))


def serial_part(workers: int, speedup: float) -> float:
    """Returns the part that a measured speed-up says is serial: (1 / S - 1 / G) / (1 - 1 / G).

    Args:
        workers: G, at least 2.
        speedup: S, from 1 to G.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Karp & Flatt 1990.

    >>> round(serial_part(4, 3.0769230769230766), 6)
    0.1
    """
    number = count("workers", workers)
    if number == 1:
        refuse("workers", "be at least 2, as one shows no speed-up", workers)
    if not 1 <= positive("speedup", speedup) <= number:
        refuse("speedup", f"be from 1 to the {number} workers", speedup)
    return (1 / speedup - 1 / number) / (1 - 1 / number)


def serial_part_of_overhead(overhead_ratio: float) -> float:
    """Returns R_O / (1 + R_O), with which Amdahl's law is Lemma 3.1.

    Raises:
        InvalidAdviceError: If the ratio is negative or no number.

    References:
        Zou et al. 2017, Lemma 3.1: G (1 + R_O) / (1 + G R_O) = 1 / (s + (1 - s) / G).

    >>> serial_part_of_overhead(0.25)
    0.2
    """
    ratio = amount("overhead_ratio", overhead_ratio)
    return ratio / (1 + ratio)

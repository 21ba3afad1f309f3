"""Numbers of workers, seconds and bytes as sentences write them."""


def counted(workers: int) -> str:
    """Writes a number of workers."""
    return f"{workers} worker{'' if workers == 1 else 's'}"


def seconds(value: float) -> str:
    """Writes seconds with a unit that suits them."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"  # noqa: PLR2004 - a thousandth


def size(value: float) -> str:
    """Writes bytes with a unit that suits them."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 - of the next unit
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"

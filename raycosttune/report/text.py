"""A user's names and words on their way into a figure."""

import html
import unicodedata

MOST = 300  # characters of a name or an error
HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # control, direction, lone surrogates, line ends


def visible(text: object) -> str:
    """Returns text in whose place nothing else is shown or done: a terminal acts on some."""
    return "".join(" " if c != "\n" and unicodedata.category(c) in HIDDEN else c for c in str(text))


def plain(text: object, most: int = MOST) -> str:
    """Returns text without what can't be seen, in one line, cut where it is long.

    Args:
        text: Anything.
        most: Characters kept.
    """
    seen = " ".join(visible(text).split())
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def shown(text: object, most: int = MOST) -> str:
    """Returns text that a figure shows as it is: plotly reads a part of HTML in every string."""
    return html.escape(plain(text, most), quote=False)

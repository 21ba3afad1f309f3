"""Tells from an error's words whether memory ran out."""

import re

# No bare OOM: of every worker that died Ray says that the "OOM killer" may have done it.
WORDS = re.compile(
    r"out[ _]?of[ _]?memory|running low on memory|MemoryError|bad_alloc"
    r"|can('t|not) allocate memory|ALLOC_FAILED|OOMKilled",
    re.IGNORECASE,
)


def says_out_of_memory(text: str) -> bool:
    """Tells whether a text, such as a traceback, says that memory ran out."""
    return WORDS.search(text) is not None


def is_out_of_memory(error: BaseException | None) -> bool:
    """Tells whether an error, or one that it came from, says that memory ran out."""
    while error is not None:
        if says_out_of_memory(f"{type(error).__name__}: {error}"):
            return True
        error = error.__cause__ or error.__context__
    return False

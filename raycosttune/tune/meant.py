"""Which reported name was likely meant by a goal's metric that nobody reports."""

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from raycosttune.core.value import read_number
from raycosttune.tune.result import reported_names

ALIKE = 0.85  # micro and macro, mean and median are at 0.8
FEWEST = 4  # letters that a slip is told from another word by: mse and rmse are two metrics
LEAST_START = 3  # letters of an abbreviation


def meant(result: Mapping[str, Any], metric: str) -> str:
    """Returns the number in a result whose name is the metric's but for its spelling, or "".

    Names are compared word by word: "acc" and "Accuracy" mean "accuracy", while "train_loss" is
    no slip for "val_loss", nor "top1" for "top5", as a loop may report one more often than the
    other.

    Args:
        result: What was reported, by names joined with "/".
        metric: The name that is looked for.
    """
    if metric in result:
        return ""
    likely = [
        (SequenceMatcher(None, name.lower(), metric.lower()).ratio(), name)
        for name in reported_names(result)
        if read_number(result[name]) is not None and _is_slip(name, metric)
    ]
    return max(likely)[1] if likely else ""


def perhaps(name: str) -> str:
    """Names what was likely meant as the end of a sentence, nothing for no name."""
    return f"; perhaps metric={name!r} is meant" if name else ""


def _is_slip(name: str, metric: str) -> bool:
    one, other = _words(name), _words(metric)
    if "".join(one) == "".join(other):
        return True
    return len(one) == len(other) and all(map(_is_alike, one, other))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", name.lower())


def _is_alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if short == long or not short.isalpha():
        return short == long
    is_start = long.startswith(short) and len(long) >= 2 * len(short) >= 2 * LEAST_START
    is_typo = len(short) >= FEWEST and SequenceMatcher(None, short, long).ratio() >= ALIKE
    return is_start or is_typo

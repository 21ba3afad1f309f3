"""Names and words that would be markup, script or a trap if they were not taken as text."""

from pathlib import Path

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended
from tests.report.sweeps import Writer

CORPUS = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<!--<script>",
    "]]><svg onload=window.hacked=1>",
    "<img src=x onerror=window.hacked=1>",
    '"><img src=x onerror="window.hacked=1">',
    "' onfocus='window.hacked=1' autofocus='",
    "<a href='javascript:window.hacked=1'>run</a>",
    "<a href='https://example.com/'>free GPUs</a>",
    "<iframe src='https://example.com/'></iframe>",
    "<style>*{display:none}</style>",
    "<b>bold</b> &amp; &lt;i&gt;",
    "%{customdata[0]} %{x} %{meta}",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "$\\href{https://example.com}{x}$",
    "\u202egnp.exe\u2066",
    "line\nbreak\ttab\x00nul",
    "\u2028\u2029",
    "=HYPERLINK(1)",
    "x" * 2000,
)


def injected(folder: Path, text: str) -> Path:
    """Writes a sweep in which every name and word that a user controls is a text."""
    goal = Goal(metric=text, mode="max", target=0.9, deadline_seconds=100)
    sweep = Writer(folder, goal)
    reached = Ended(EndCause.REACHED, text)
    sweep.trial(text, (2, 32), [0.5, 0.8, 0.92], reached, recipe={text: text}, lists=False)
    sweep.trial(f"{text}2", (1, 64), [0.3], Ended(EndCause.FAILED, text), recipe={text: 0.1})
    sweep.trial(f"{text}3", (1, 32), [0.3], recipe={"lr": text})
    return folder


def all_injected(folder: Path) -> Path:
    """Writes one sweep in which each trial is named and described by another text."""
    goal = Goal(metric=" ".join(CORPUS[:5]), mode="max", target=0.9, deadline_seconds=100)
    sweep = Writer(folder, goal)
    for number, text in enumerate(CORPUS):
        end = Ended(EndCause.REACHED if number % 2 else EndCause.FAILED, text)
        values: list[float | None] = [0.5, 0.8, 0.92 if number % 2 else 0.7]
        sweep.trial(f"{number} {text}", (2, 32), values, end, recipe={text: text})
    return folder

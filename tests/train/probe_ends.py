"""Functions that end in many ways, for processes that import nothing heavy."""

import os
import signal
import sys
import time
from typing import NoReturn

from raycosttune.errors import InvalidAdviceError


def echo(word: str) -> dict[str, object]:
    keys = ("RANK", "WORLD_SIZE", "RAYCOSTTUNE_STORE", "OF_ALL")
    return {"word": word, **{key: os.environ[key] for key in keys}}


def fail(word: str) -> NoReturn:
    raise ValueError(word)


def run_out() -> NoReturn:
    raise MemoryError


def refuse() -> NoReturn:
    msg = "nothing fits"
    raise InvalidAdviceError(msg)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    print("last words", file=sys.stderr, flush=True)  # noqa: T201 - a process's own
    os._exit(3)


def leave_at_once(target: str) -> None:
    os._exit(4 if target else 0)


def fail_on_one() -> None:
    if os.environ["RANK"] == "0":
        time.sleep(600)
    msg = "nothing fits on rank 1"
    raise InvalidAdviceError(msg)


def hang() -> None:
    time.sleep(600)

"""Calls a function in processes of their own, whose memory and end tell of nothing else."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from raycosttune.core.memory import is_out_of_memory
from raycosttune.errors import InvalidAdviceError, RayCostTuneError

OWN = str(Path(__file__).parents[1])
INSTALLED = str(Path(os.__file__).parent)
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # by the kernel, where memory ran out


class ProbeError(RayCostTuneError, RuntimeError):
    """Says that a probe could not be run to its end."""


class ProbeMemoryError(ProbeError):
    """Says that memory ran out in a probe."""


def run_children(
    function: str,
    arguments: dict[str, Any],
    *,
    workers: int = 1,
    prefix: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    timeout_seconds: float = 600.0,
) -> list[Any]:
    """Calls a function in each of some new processes, which know of one another.

    They have RANK and WORLD_SIZE in their environment, and RAYCOSTTUNE_STORE, a file by which
    `torch.distributed` can join them.

    Args:
        function: `module:name`, as can be imported here too.
        arguments: By name, as JSON can hold them.
        workers: How many processes.
        prefix: Of their command, such as one that limits their memory.
        variables: Of their environment, beside this process' own.
        timeout_seconds: After this long they are ended.

    Returns:
        What the function returned in each, through JSON.

    Raises:
        InvalidAdviceError: If one raised that.
        ProbeMemoryError: If memory ran out in one.
        ProbeError: If one raised, died or took too long.
    """
    command = [*prefix, sys.executable, "-m", "raycosttune.train.probe_child"]
    places = os.pathsep.join([str(Path.cwd()), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": places} | dict(variables or {})
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(workers) as pool,
        ExitStack() as stack,
    ):
        answers = []
        for rank in range(workers):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(workers)}
            own["RAYCOSTTUNE_STORE"] = str(Path(folder) / "store")
            path = Path(folder) / f"{rank}.json"
            process = subprocess.Popen(  # noqa: S603 - this interpreter
                [*command, function, json.dumps(arguments), str(path)],
                env=environment | own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.kill)
            what = f"a probe of {arguments['target']}" if "target" in arguments else "a probe"
            answers.append(pool.submit(_answer, process, path, timeout_seconds, what))
        for answer in as_completed(answers):
            answer.result()  # raises what the first to fail met: the others only lost it
        return [answer.result() for answer in answers]


def _answer(process: "subprocess.Popen[str]", path: Path, timeout_seconds: float, what: str) -> Any:  # noqa: ANN401 - JSON
    try:
        _, errors = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired as error:
        msg = (
            f"{what} must end within {timeout_seconds:g} s. "
            "See that it waits for nothing, or take a smaller batch or fewer steps"
        )
        raise ProbeError(msg) from error
    if process.returncode in KILLED:
        msg = f"{what} was killed, as the system does where memory runs out"
        raise ProbeMemoryError(msg)
    told = json.loads(path.read_text()) if path.exists() else {}
    if "answer" in told:
        return told["answer"]
    if "invalid" in told:
        raise InvalidAdviceError(told["invalid"])
    last = "; ".join(errors.strip().splitlines()[-3:]) or "it wrote no error"
    ended = f"got exit status {process.returncode}: {last}"
    kind = ProbeMemoryError if told.get("out_of_memory") else ProbeError
    msg = f"{what} must run to its end, {told.get('error', ended)}"
    raise kind(msg)


def main(function: str, arguments: str, answer: str) -> None:
    """Calls a function and writes what came of it.

    Args:
        function: `module:name`.
        arguments: By name, as JSON.
        answer: File to write.
    """
    module, _, name = function.partition(":")
    try:
        told = {"answer": getattr(import_module(module), name)(**json.loads(arguments))}
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        told = {"error": f"it raised {type(error).__name__}: {error}"[:2000] + place_of(error)}
        told["out_of_memory"] = is_out_of_memory(error)
        if isinstance(error, InvalidAdviceError):
            told["invalid"] = str(error)
    Path(answer).write_text(json.dumps(told))


def place_of(error: BaseException) -> str:
    """Names the innermost line that an error came by in the user's own code, with a blank before.

    Args:
        error: As it was caught.
    """
    frames = traceback.extract_tb(error.__traceback__)
    others = (OWN, INSTALLED, "<")
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(others) and "site-packages" not in frame.filename
    ]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Usage: python tests/forked/client.py [--serialized-runtime-env-context JSON] SCRIPT [OPTION...]

Takes the place of Ray's `setup_worker.py`: runs a worker's script in a fork of the server at
`RAYCOSTTUNE_FORKS`, or as Ray does where nobody answers there.
"""

import argparse
import json
import os
import signal
import socket
import sys

VARIABLE = "RAYCOSTTUNE_FORKS"


def main() -> None:
    """Lives as long as the fork does."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--serialized-runtime-env-context", default="{}")
    parser.add_argument("--language")
    options, argv = parser.parse_known_args()
    added = json.loads(options.serialized_runtime_env_context).get("env_vars", {})
    environ = os.environ | {name: os.path.expandvars(added[name]) for name in added}
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(os.environ[VARIABLE])
    except (KeyError, OSError):
        own = os.path.join(os.path.dirname(argv[0]), "setup_worker.py")  # noqa: PTH118, PTH120 - pathlib takes longer to load
        os.execv(sys.executable, [sys.executable, own, *sys.argv[1:]])  # noqa: S606 - no shell
    started = {"argv": argv, "environ": environ, "folder": os.getcwd()}  # noqa: PTH109 - fast
    socket.send_fds(server, [json.dumps(started).encode() + b"\n"], [0, 1, 2])
    fork = int(server.makefile().readline())
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(fork, number))
    while server.recv(1):
        pass


if __name__ == "__main__":
    main()

"""Usage: python -S -E tests/forked/client.py SOCKET SCRIPT [ARGUMENT...]

Runs a script in a fork of the server at a socket, or by itself where there is none.
"""

import json
import os
import signal
import socket
import sys

if __name__ == "__main__":
    path, *argv = sys.argv[1:]
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
    except OSError:
        os.execv(sys.executable, [sys.executable, *argv])  # noqa: S606 - no shell is wanted
    started = {"argv": argv, "environ": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109
    socket.send_fds(server, [json.dumps(started).encode() + b"\n"], [0, 1, 2])
    fork = int(server.makefile().readline())
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(fork, number))
    while server.recv(1):
        pass

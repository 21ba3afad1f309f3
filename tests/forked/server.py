"""Usage: python -P tests/forked/server.py SOCKET

Forks a Python that has imported PyTorch for each client, until its standard input ends.
"""

import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from pathlib import Path

IMPORTED = [
    *("torch._dynamo", "torch.distributed", "torch.utils.data", "pandas", "pydantic", "requests"),
    *("rich.console", "google.protobuf.descriptor_pb2", "yaml", "fsspec", "jsonschema", "filelock"),
    *("pytest", "sklearn.datasets", "sklearn.isotonic", "scipy.optimize", "scipy.sparse.linalg"),
]


def serve(path: str) -> None:
    """Returns in each fork, with what it is to run as `sys.argv`."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork but its client
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen(64)
        sys.stdout.write("listens\n")
        sys.stdout.flush()
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in selector.select()):
            client, _ = listener.accept()
            if os.fork() == 0:
                break
            client.close()
        else:
            sys.exit()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)  # as each of Ray's workers has a group of processes of its own
    become(client)


def become(client: socket.socket) -> None:
    """Takes over what a client was started with. It ends when this process closes its socket."""
    data, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
    while not data.endswith(b"\n"):
        data += client.recv(1 << 20)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    started = json.loads(data)
    os.environ.clear()
    os.environ.update(started["environ"])
    os.chdir(started["folder"])
    sys.argv = started["argv"]
    client.sendall(b"%d\n" % os.getpid())
    client.detach()


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    serve(sys.argv[1])
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")

"""Workers of Ray for tests, forked from a process that has imported PyTorch.

A test's sweep starts a dozen of Ray's processes, and each would import PyTorch anew, which takes
several seconds of a processor. `client.py` is what Ray starts instead: it hands what a worker is
started with to `server.py`, which becomes that worker in a fork. Nothing of Ray or of this package
is imported before the fork, so that a worker's own start is as it always is. Examples that start
their own Ray, and `scripts/demo`, have workers as users have.
"""

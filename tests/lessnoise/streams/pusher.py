"""Processes that push the values 1, 2, 3, ... to a stream, and all but the last are killed: ``pusher.py FOLDER COUNT``.

Each is forked from this one, so that it begins at once, and tells a total in one write: a whole line or none.
"""

import os
import random
import signal
import sys
import time

import scipy.signal  # noqa: F401  (so that a forked process does not load it)

from lessnoise.streams import Stream


def push(folder: str) -> None:
    """The last period again: it may not be told yet."""
    stream = Stream.open(folder)
    for period in range(max(stream.period, 1), stream.plan.periods + 1):
        os.write(1, f"{period} {stream.push(period, period=period)!r}\n".encode())


if __name__ == "__main__":
    draws = random.Random(1)
    for trial in range(int(sys.argv[2])):
        child = os.fork()
        if child == 0:
            push(sys.argv[1])
            os._exit(0)
        if trial + 1 < int(sys.argv[2]):
            time.sleep(draws.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

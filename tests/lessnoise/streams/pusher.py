"""A process that pushes the values 1, 2, 3, ... to a stream until it is killed: ``python pusher.py FOLDER``."""

import sys

from lessnoise.streams import Stream

if __name__ == "__main__":
    stream = Stream.open(sys.argv[1])
    for period in range(max(stream.period, 1), stream.plan.periods + 1):  # the last one again: it may not be told yet
        print(period, repr(stream.push(period, period=period)), flush=True)

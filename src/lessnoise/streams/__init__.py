"""Running totals under continual observation, private over all periods together."""

from lessnoise.streams.plan import Plan
from lessnoise.streams.store import StreamDamaged
from lessnoise.streams.stream import Stream

__all__ = ["Plan", "Stream", "StreamDamaged"]

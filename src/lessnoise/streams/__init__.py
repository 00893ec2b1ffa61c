"""Running totals under continual observation, private over all periods together."""

from lessnoise.streams.picture import draw_totals, draw_totals_on, half_width
from lessnoise.streams.plan import Plan
from lessnoise.streams.store import StreamDamaged
from lessnoise.streams.stream import Stream

__all__ = ["Plan", "Stream", "StreamDamaged", "draw_totals", "draw_totals_on", "half_width"]

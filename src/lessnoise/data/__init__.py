"""Data to try things on. All of it is synthetic; nothing is downloaded."""

from lessnoise.data.city import BOUNDS, synthetic_city

__all__ = ["BOUNDS", "synthetic_city"]

"""Data to try things on: a synthetic city, and public files that are checked before use and never shipped."""

from lessnoise_paper.data.synthetic import BOUNDS, synthetic_city
from lessnoise_paper.data.uber import uber_pickups

__all__ = ["BOUNDS", "synthetic_city", "uber_pickups"]

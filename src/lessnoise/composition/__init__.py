"""What many releases about the same individuals guarantee together, exactly; and what the literature says."""

from lessnoise.composition.description import Composition, Part, compose

__all__ = ["Composition", "Part", "compose"]

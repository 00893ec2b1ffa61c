"""What many releases about the same individuals guarantee together, exactly; and what the literature says."""

from lessnoise.composition.description import Composition, Part, as_composition, compose
from lessnoise.composition.published import amortise

__all__ = ["Composition", "Part", "amortise", "as_composition", "compose"]

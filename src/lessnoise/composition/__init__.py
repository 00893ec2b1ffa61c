"""What many releases about the same individuals guarantee together, exactly; and what the literature says."""

from lessnoise.composition.description import Composition, Part, as_composition, compose
from lessnoise.composition.published import amortise, strong_composition
from lessnoise.composition.steps import SHARP, delta_of_steps

__all__ = [
    "SHARP",
    "Composition",
    "Part",
    "amortise",
    "as_composition",
    "compose",
    "delta_of_steps",
    "strong_composition",
]

"""Queries: from records to an array to release, with its sensitivity."""

from lessnoise.query.axis import Axis
from lessnoise.query.base import Answer, Query
from lessnoise.query.gram import Gram
from lessnoise.query.histogram import Histogram
from lessnoise.query.linear import Mean, Sum
from lessnoise.query.moments import SecondMoments
from lessnoise.query.unit import ROW, Unit

__all__ = ["ROW", "Answer", "Axis", "Gram", "Histogram", "Mean", "Query", "SecondMoments", "Sum", "Unit"]

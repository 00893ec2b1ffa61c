"""Whole jobs: from data on an engine to a private release, in one call."""

from lessnoise.tasks.histogram import HistogramFolder, HistogramRelease, plan_histogram, private_histogram

__all__ = ["HistogramFolder", "HistogramRelease", "plan_histogram", "private_histogram"]

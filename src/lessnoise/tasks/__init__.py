"""Whole jobs: from data on an engine to a private release, in one call."""

from lessnoise.tasks.histogram import (
    HistogramRelease,
    check_histogram_folder,
    histogram_contents,
    histogram_file_names,
    plan_histogram,
    private_histogram,
    reserve_histogram,
    write_histogram,
)

__all__ = [
    "HistogramRelease",
    "check_histogram_folder",
    "histogram_contents",
    "histogram_file_names",
    "plan_histogram",
    "private_histogram",
    "reserve_histogram",
    "write_histogram",
]

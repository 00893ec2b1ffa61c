"""Queries: from records to an array to release, with its sensitivity."""

from lessnoise.query.counts import CountQuery, grid_counts

__all__ = ["CountQuery", "grid_counts"]

"""Whole jobs: from data on an engine to a private release, in one call."""

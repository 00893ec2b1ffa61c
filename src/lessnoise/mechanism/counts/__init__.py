"""Mechanisms made for counts: trees of counts (H_b), and counts in data-dependent buckets (DAWA)."""

from lessnoise.mechanism.counts.dawa import Dawa, dawa
from lessnoise.mechanism.counts.hierarchy import Hierarchy, best_branching, hb

__all__ = ["Dawa", "Hierarchy", "best_branching", "dawa", "hb"]

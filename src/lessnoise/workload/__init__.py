"""What is asked of a table of counts: prefix sums, ranges, marginals, any linear questions, and products of them."""

from lessnoise.workload.factor import TOTAL, Factor
from lessnoise.workload.workload import Block, Workload, identity, marginals, matrix, prefixes, ranges, total

__all__ = ["TOTAL", "Block", "Factor", "Workload", "identity", "marginals", "matrix", "prefixes", "ranges", "total"]

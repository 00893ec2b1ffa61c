"""Ask a table: counts, sums, means, variances and quantiles of groups, each with an interval, in one release."""

from lessnoise.table.aggregates import Aggregate, count, mean, quantiles, sum, variance  # noqa: A004
from lessnoise.table.answer import STATISTIC, TableAnswer, TableFolder
from lessnoise.table.job import Job
from lessnoise.table.plan import Plan
from lessnoise.table.table import Table, TableGroups, TableQuestion

__all__ = [
    "STATISTIC",
    "Aggregate",
    "Job",
    "Plan",
    "Table",
    "TableAnswer",
    "TableFolder",
    "TableGroups",
    "TableQuestion",
    "count",
    "mean",
    "quantiles",
    "sum",
    "variance",
]

"""Ask a table: counts, sums, means, quantiles, covariances and the like of groups, with intervals, in one release."""

from lessnoise.table.aggregates import Aggregate, count, mean, quantiles, sum, variance  # noqa: A004
from lessnoise.table.answer import STATISTIC, TableAnswer, TableFolder
from lessnoise.table.histograms import CellCounts, histogram
from lessnoise.table.job import Job
from lessnoise.table.joint import covariance, linear_regression
from lessnoise.table.marginals import MarginalsQuestion
from lessnoise.table.plan import Plan
from lessnoise.table.sums_of_cells import cdf, ranges
from lessnoise.table.table import Table, TableGroups, TableQuestion

__all__ = [
    "STATISTIC",
    "Aggregate",
    "CellCounts",
    "Job",
    "MarginalsQuestion",
    "Plan",
    "Table",
    "TableAnswer",
    "TableFolder",
    "TableGroups",
    "TableQuestion",
    "cdf",
    "count",
    "covariance",
    "histogram",
    "linear_regression",
    "mean",
    "quantiles",
    "ranges",
    "sum",
    "variance",
]

"""Ask a table: counts, sums, means, quantiles, covariances and the like of groups, with intervals, in one release."""

from lessnoise.table.aggregates import Aggregate, count, mean, quantiles, sum, variance  # noqa: A004
from lessnoise.table.answer import STATISTIC, TableAnswer, TableFolder
from lessnoise.table.histograms import histogram
from lessnoise.table.job import Job
from lessnoise.table.joint import covariance, linear_regression
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
    "covariance",
    "histogram",
    "linear_regression",
    "mean",
    "quantiles",
    "sum",
    "variance",
]

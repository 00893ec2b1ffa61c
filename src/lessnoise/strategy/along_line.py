"""What strategies along one axis share whose entries are not negative and whose (A^T A)^-1 is at hand."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from lessnoise._common import root_up, round_up
from lessnoise.strategy.base import Strategy
from lessnoise.strategy.squares import check_axis, line_of

if TYPE_CHECKING:
    from fractions import Fraction

    from lessnoise._common import Array
    from lessnoise.strategy.squares import Line
    from lessnoise.workload import Factor, Workload


class AlongLine(Strategy):
    """Errors follow from V (A^T A)^-1 and from traces for squares that are lines, norms from powers of columns."""

    @property
    def nonnegative(self) -> bool:
        """No entry is below 0."""
        return True

    @abstractmethod
    def solve(self, values: Array) -> Array:
        """V (A^T A)^-1, for rows V."""

    @abstractmethod
    def line_trace(self, line: Line) -> float:
        """tr(G (A^T A)^-1) for squares that are lines."""

    @abstractmethod
    def power(self, order: int) -> Fraction:
        """At least the largest sum of the entries of a column, or of their squares."""

    def norm(self, order: int) -> float:
        """The largest l1 or l2 norm of a column, rounded up."""
        return round_up(self.power(1)) if order == 1 else root_up(self.power(2))

    def factor_trace(self, factor: Factor) -> float:
        """tr(F^T F (A^T A)^-1)."""
        line = line_of(factor)
        return float(self.variances(factor.matrix()).sum()) if line is None else self.line_trace(line)

    def trace(self, workload: Workload) -> float:
        """tr(W^T W (A^T A)^-1)."""
        check_axis(workload, *self.shape)
        return sum(weight * self.factor_trace(factor) for weight, (factor,) in workload.terms())

    def variances(self, questions: Array) -> Array:
        """q (A^T A)^-1 q^T for each of some questions about the table, one in a row."""
        return np.asarray((questions * self.solve(questions)).sum(axis=-1))

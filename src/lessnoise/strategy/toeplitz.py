"""Strategies along one axis that are Toeplitz but for scales: A = diag(r) C diag(t), C_ij = c_(i-j) for i >= j.

With c the coefficients of (1 - x)^(-1/2), C is the square root of the matrix of prefix sums (Henzinger et al., SODA
2023; Fichtenberger et al., ICML 2023). All columns of diag(r) C diag(t) have the same l2 norm for the right t, which
lowers the error (Henzinger, Kalinin & Upadhyay, 2025), and with r_i = (i + a)^p (n - 1 - i + b)^q, p, q, a and b tuned,
the error of prefix sums and of ranges is within 0.3% of the least that Gaussian noise can have. Everything takes
O(n log n) operations, by FFT.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy import series
from lessnoise.strategy.base import Strategy
from lessnoise.strategy.exactness import whole_numbers
from lessnoise.strategy.series import PRECISE, UNIT, blocks, convolved, correlated, power_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Array, IntArray
    from lessnoise.workload import Factor, Workload

_DIRECT = 1024  # up to so many cells, the matrix is multiplied
_BAND = 64  # so many coefficients are a recursion
_ALL_COLUMNS = 256  # up to so many cells, every column is listed


@dataclass(frozen=True)
class Toeplitz(Strategy):
    """A = diag(r) C diag(t) for ``size`` cells: ``coefficients`` c (missing ones are 0), scales above 0, or none for 1.

    >>> running = Toeplitz(4, FrozenMatrix([[1.0, 1.0, 1.0, 1.0]]))
    >>> running.measure(np.array([1.0, 2.0, 3.0, 4.0])).round(9).tolist(), round(running.norm(2), 9)
    ([1.0, 3.0, 6.0, 10.0], 2.0)
    """

    size: int
    coefficients: FrozenMatrix
    row_scales: FrozenMatrix | None = None
    column_scales: FrozenMatrix | None = None

    kind: ClassVar[str] = "toeplitz"

    def __post_init__(self) -> None:
        validation.whole_number("size", self.size)
        given = self.coefficients.shape
        if given[0] != 1 or given[1] > self.size or not self.coefficients.array[0, 0]:
            raise InvalidInput(
                f"coefficients.shape={given} for size={self.size}: pass one row of at most so many, the first not 0."
            )
        for name, scales in (("row_scales", self.row_scales), ("column_scales", self.column_scales)):
            if scales is not None and (scales.shape != (1, self.size) or not (scales.array > 0.0).all()):
                raise InvalidInput(f"{name}.shape={scales.shape} for size={self.size}: pass one row, all above 0.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return (self.size,)

    @property
    def rows(self) -> int:
        """As many as cells."""
        return self.size

    @property
    def nonnegative(self) -> bool:
        """No coefficient is below 0."""
        return bool((self.coefficients.array >= 0.0).all())

    @functools.cached_property
    def _c(self) -> Array:
        return np.concatenate([self.coefficients.array[0], np.zeros(self.size - self.coefficients.shape[1])])

    @functools.cached_property
    def _r(self) -> Array:
        return np.ones(self.size) if self.row_scales is None else self.row_scales.array[0]

    @functools.cached_property
    def _t(self) -> Array:
        return np.ones(self.size) if self.column_scales is None else self.column_scales.array[0]

    @functools.cached_property
    def _g(self) -> Array:
        """The coefficients of 1/c(x)."""
        return series.reciprocal(self._c)

    @property
    def _constant(self) -> bool:
        return self.row_scales is None and self.column_scales is None

    @functools.cached_property
    def _matrix(self) -> Array:
        from scipy.linalg import toeplitz

        return np.asarray(self._r[:, np.newaxis] * toeplitz(self._c, np.zeros(self.size)) * self._t)

    def roundings(self) -> float:
        """How often an entry of A x is rounded, relative to the sum of the sizes of its terms; unknown for FFTs."""
        return self.size + 3.0 if self.size <= _DIRECT else math.inf

    def magnitudes(self, table: Array) -> Array:
        """|A| x, for tables whose products are not computed by FFT."""
        return np.asarray(table @ np.abs(self._matrix.T))

    def measure(self, table: Array) -> Array:
        """A x, as floats: by the matrix for up to 1,024 cells, else by FFT in the longest floats."""
        if self.size <= _DIRECT:
            return np.asarray(table @ self._matrix.T)
        found = convolved(np.multiply(self._t, table, dtype=PRECISE), self._c.astype(PRECISE))
        return np.asarray(self._r * found).astype(np.float64)

    def error(self, table: Array) -> float:
        """A proved bound of the rounding of sums, or of FFTs and of their results."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.size <= _DIRECT:
                sizes = float(np.max(self.magnitudes(np.abs(table)), initial=0.0))
                found = 1.01 * self.roundings() * (UNIT * sizes + math.ulp(0.0))
            else:
                found = 1.01 * self._fft_error(np.multiply(self._t, np.abs(table), dtype=PRECISE)) + math.ulp(0.0)
        return found if math.isfinite(found) else math.inf

    def _fft_error(self, weighed: Any) -> float:  # noqa: ANN401
        largest, found = float(np.abs(self._c).max()), 0.0
        for start, stop in blocks(self.size):
            before = weighed[..., :stop]
            scale = float(self._r[start:stop].max())
            result = largest * float(before.sum(axis=-1).max())  # no entry of C diag(t) x is larger
            found = max(found, scale * (series.rounding(self._c[:stop], before) + UNIT * result))
        return found

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x: sums of products of whole numbers times powers of two."""
        first = max(index + 1 - self.coefficients.shape[1], 0)
        used = first + np.flatnonzero(table[first : index + 1])
        if not used.size:
            return Fraction(0)
        total, lowest = whole_numbers(self._c[index - used])
        for values in (self._t, table):
            wholes, least = whole_numbers(values[used])
            total, lowest = [a * b for a, b in zip(total, wholes, strict=True)], lowest + least
        return Fraction(sum(total)) * Fraction(2) ** lowest * Fraction(float(self._r[index]))

    def fit(self, measured: Array) -> Array:
        """A^-1 y: a recursion if there are few coefficients, or a convolution with those of 1/c(x)."""
        scaled = measured / self._r
        if self.coefficients.shape[1] <= _BAND:
            from scipy.signal import lfilter

            return np.asarray(lfilter([1.0], self.coefficients.array[0], scaled, axis=-1)) / self._t
        return convolved(scaled, self._g) / self._t

    def columns(self) -> list[Moves]:
        """The first column, where there are no scales; else all, or some of many."""
        if self._constant:
            return [Moves.of(np.abs(self._c).tolist())]  # the others are beginnings of it
        some = range(self.size) if self.size <= _ALL_COLUMNS else (0, self.size // 2, self.size - 1)
        up = 1.0 + 4.0 * UNIT  # products of three, rounded up
        return [Moves.of((self._r[j:] * np.abs(self._c[: self.size - j]) * self._t[j] * up).tolist()) for j in some]

    def envelope(self) -> Moves | None:
        """The largest scales everywhere, where the columns are too many."""
        if self._constant or self.size <= _ALL_COLUMNS:
            return None
        largest = float(self._r.max() * self._t.max())
        return Moves.of((largest * np.abs(self._c) * (1.0 + 4.0 * UNIT)).tolist())

    def norm(self, order: int) -> float:
        """The largest l1 or l2 norm of a column, rounded up: sums by FFT, with their proved rounding."""
        return _norm(self, order)

    def trace(self, workload: Workload) -> float:
        """tr(W^T W (A^T A)^-1)."""
        return math.fsum(weight * self.factor_trace(factors[0]) for weight, factors in workload.terms())

    def factor_trace(self, factor: Factor) -> float:
        """tr(F^T F (A^T A)^-1) = ||F A^-1||_F^2 of the questions along the axis.

        >>> from lessnoise.workload import Factor
        >>> Toeplitz(2, FrozenMatrix([[1.0, 1.0]])).factor_trace(Factor("identity", 2))  # A^-1 = [[1, 0], [-1, 1]]
        3.0
        """
        return _factor_trace(self, factor)

    def variances(self, questions: Array) -> Array:
        """||A^-T q||^2 for each question."""
        return np.asarray(np.square(self.spread(questions)).sum(axis=-1))

    def spread(self, questions: Array) -> Array:
        """A^-T q: with which weights what was measured answers each question."""
        return np.asarray(correlated(questions / self._t, self._g) / self._r)

    def __str__(self) -> str:
        return f"Toeplitz matrix of {self.size} cells"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        scales = {"row_scales": self.row_scales, "column_scales": self.column_scales}
        return {
            "kind": self.kind,
            "size": self.size,
            "coefficients": self.coefficients.to_dict(),
            **{name: value.to_dict() for name, value in scales.items() if value is not None},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Toeplitz:
        """The inverse of :meth:`to_dict`."""
        optional = ("row_scales", "column_scales")
        given = validation.fields(values, ("kind", "size", "coefficients"), "strategy", optional)
        scales = {name: FrozenMatrix.from_dict(given[name], name) for name in optional if name in given}
        return cls(given["size"], FrozenMatrix.from_dict(given["coefficients"], "coefficients"), **scales)


def square_root(size: int) -> Toeplitz:
    """The square root of prefix sums, without scales.

    >>> square_root(3).coefficients.array.tolist()
    [[1.0, 0.5, 0.375]]
    """
    return Toeplitz(size, FrozenMatrix(power_series(-0.5, size)[np.newaxis]))


def toeplitz_for(factor: Factor) -> Toeplitz:
    """The strategy for Gaussian noise, with all columns of l2 norm 1, for prefix sums or for all ranges.

    >>> from lessnoise.workload import Factor
    >>> strategy = toeplitz_for(Factor("prefixes", 64))
    >>> round(strategy.norm(2), 9), round(strategy.factor_trace(Factor("prefixes", 64)) / 64, 3)  # 4.409 at least
    (1.0, 4.412)
    """
    validation.choice("kind", factor.kind, ("prefixes", "ranges"))
    size = factor.size
    power, shape = _shape(factor)
    rows, norms = _scales(power, shape, size)
    scales = FrozenMatrix(rows[np.newaxis]), FrozenMatrix(1.0 / norms[np.newaxis])
    return Toeplitz(size, FrozenMatrix(power_series(-power, size)[np.newaxis]), *scales)


def toeplitz_strategies(workload: Workload) -> Iterator[Strategy]:
    """For tables of one axis, of which prefix sums or ranges are asked."""
    if len(workload.shape) == 1 and workload.cells > 1:
        for kind in ("prefixes", "ranges"):
            found = [factors[0] for _, factors in workload.terms() if factors[0].kind == kind]
            if found:
                yield toeplitz_for(found[0])


# The shape of the scales.

# For 4^2, 4^3, ... cells: the power of 1/(1 - x), then p, log a (of a/n for prefixes), q and log b, found by a search.
_SHAPES = {
    "prefixes": (
        (0.524, 0.199, -2.737, 0.486, -0.347),
        (0.515, 0.206, -3.323, 0.458, -0.377),
        (0.510, 0.211, -3.523, 0.437, -0.437),
        (0.507, 0.219, -3.487, 0.424, -0.495),
        (0.505, 0.227, -3.393, 0.414, -0.545),
        (0.504, 0.233, -3.299, 0.406, -0.526),
        (0.503, 0.239, -3.221, 0.401, -0.495),
    ),
    "ranges": (
        (0.523, -0.752, -0.228, 0.225, -1.445),
        (0.512, -0.765, -0.413, 0.247, -1.863),
        (0.507, -0.771, -0.678, 0.254, -2.369),
        (0.504, -0.771, -1.029, 0.253, -2.897),
        (0.503, -0.767, -1.463, 0.249, -3.364),
        (0.502, -0.764, -1.572, 0.245, -3.221),
        (0.502, -0.760, -1.602, 0.241, -3.134),
    ),
}


def _shape(factor: Factor) -> tuple[float, list[float]]:
    """Between the sizes of the search, straight in the logarithm of the size."""
    table = np.asarray(_SHAPES[factor.kind])
    sizes = 2.0 * np.arange(2, len(table) + 2)
    power, *shape = (float(np.interp(math.log2(factor.size), sizes, column)) for column in table.T)
    shape[1] += math.log(factor.size) if factor.kind == "prefixes" else 0.0
    return power, shape


def _scales(power: float, shape: list[float], size: int) -> tuple[Array, Array]:
    """The scales of the rows, and the norms of the columns under them."""
    places = np.arange(size, dtype=np.float64)
    first, last = places + math.exp(shape[1]), size - 1 - places + math.exp(shape[3])
    logs = shape[0] * np.log(first) + shape[2] * np.log(last)
    rows = np.exp(logs - logs.mean())
    return rows, np.sqrt(correlated(rows * rows, power_series(-power, size) ** 2))


@functools.lru_cache(maxsize=16)
def _norm(strategy: Toeplitz, order: int) -> float:
    powers = np.abs(strategy._c) ** order
    if strategy._constant:
        largest = math.fsum(powers) * (1.0 + 4.0 * UNIT)
    else:
        rows = strategy._r**order
        sums = correlated(rows, powers)
        for start, stop in series.later_blocks(strategy.size):
            sums[start:stop] += series.rounding(powers[: strategy.size - start], rows[start:])
        largest = float((sums * strategy._t**order).max()) * (1.0 + 16.0 * UNIT)
    return math.nextafter(largest if order == 1 else math.sqrt(largest), math.inf)


# Traces.


@functools.lru_cache(maxsize=16)
def _factor_trace(strategy: Toeplitz, factor: Factor) -> float:
    g, r, t = strategy._g, strategy._r, strategy._t
    if factor.kind in ("prefixes", "ranges"):
        return _sums_trace(g, r, 1.0 / t, factor.kind == "ranges", strategy._constant)
    if factor.kind == "identity":
        return float(correlated(t**-2.0, g**2) @ r**-2.0)
    return math.fsum(strategy.variances(factor.matrix()))


def _sums_trace(g: Array, rows: Array, norms: Array, ranges: bool, constant: bool = False) -> float:
    """||F diag(norms) G diag(1/rows)||_F^2, F all prefix sums, or all ranges.

    The ranges are the differences of any two of n + 1 prefix sums P_0 = 0, ..., P_n: their squares add up to
    (n + 1) sum_i P_i^2 - (sum_i P_i)^2.
    """
    size = len(g)
    if constant:  # column j of F G has the first n - j sums of g
        sums = np.cumsum(g)
        squares = np.cumsum(sums * sums)
        return float(((size + 1) * squares - np.cumsum(sums) ** 2 if ranges else squares).sum())

    def columns(places: IntArray) -> Array:
        found = np.empty(len(places))
        for index, place in enumerate(places.tolist()):
            sums = np.cumsum(norms[place:] * g[: size - place])
            squares = float((sums * sums).sum())
            found[index] = (size + 1) * squares - float(sums.sum()) ** 2 if ranges else squares
        return found / rows[places] ** 2

    return series.smooth_sum(columns, size)

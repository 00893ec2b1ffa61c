"""Statistics of several columns together: covariances, correlations and linear regressions, each from one release.

Write a value as t in [0, 1], by its place between the bounds. A row adds all products of the Bernstein polynomials of
its columns, (1 - t, t) or, where squares are needed, ((1 - t)^2, 2 t (1 - t), t^2). They are never negative and add up
to 1, so that a row changes them by 1 in all, as it changes a count. Sums of t_i, t_i t_j and t_i^2 are linear in them.
With i.i.d. noise of deviation s on each number, the covariance of two of d columns has to first order the error
s |c|/n, where c are the coefficients of (t_i - m_i)(t_j - m_j) in this basis: at the middle 2^(d/2)/4 for degree 1.
Bernstein polynomials on a simplex would have 1.7 in place of 1/2 for two columns, and pairs with shares d (d - 1)/4.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.postprocess import lifted
from lessnoise.query import Factor, Products, column_names
from lessnoise.table.aggregates import Aggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.query import Measure

    Bounds = Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]]

_LEAST_VARIANCE = 2.0**-30  # of places in [0, 1]: the steps of the sums do not tell less from nothing
_STEEPEST = 2.0**14  # slope of places: |b|^2 times the least variance is at most the target's, which is at most 1/4
_EVEN_VARIANCE = 1.0 / 12.0  # of values that are spread evenly between the bounds


@dataclass(frozen=True)
class Joint(Aggregate):
    """Statistics of ``columns`` with their bounds, ``ranges``, in the same order."""

    columns: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()

    @property
    @abstractmethod
    def degrees(self) -> tuple[int, ...]:
        """The highest power of each column that is needed."""

    @property
    def measure(self) -> Products:
        """All products of the columns' polynomials, in the order of their names, so that several can share it."""
        factors = itertools.starmap(Factor, zip(self.columns, self.ranges, self.degrees, strict=True))
        return Products(factors=tuple(sorted(factors, key=lambda factor: factor.column)))

    @property
    def widths(self) -> Array:
        """High less low, for each column."""
        return np.array([high - low for low, high in self.ranges])

    @property
    def rules(self) -> list[str]:
        """Which rows do not count, and what is clipped."""
        names = ", ".join(map(repr, self.columns))
        found = [f"rows with NULL or NaN in one of {names} do not count for statistics of all of them"]
        pairs = zip(self.columns, self.ranges, strict=True)
        return found + [f"values of {column!r} are clipped to {bounds}" for column, bounds in pairs]

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "aggregate": self.kind,
            "columns": list(self.columns),
            "bounds": [list(bounds) for bounds in self.ranges],
        }


@dataclass(frozen=True)
class Covariances(Joint):
    """Covariances of all pairs of columns, and correlations. Build one with :func:`covariance`."""

    kind: str = "covariance"
    correlation: bool = False

    @property
    def names(self) -> list[str]:
        """Of the pairs, in order."""
        kinds = ("covariance", "correlation") if self.correlation else ("covariance",)
        return [
            f"{kind} of {one} and {other}" for kind in kinds for one, other in itertools.combinations(self.columns, 2)
        ]

    @property
    def degrees(self) -> tuple[int, ...]:
        """Correlations need squares."""
        return (2 if self.correlation else 1,) * len(self.columns)

    def estimate(self, measure: Measure, noisy: Array, deviation: float = 0.0) -> Array:
        """Covariances and correlations of all pairs; variances are lifted to their noise, of this deviation."""
        _, spread, floor = Places.of(self.columns, measure).moments(noisy, deviation)
        one, other = np.triu_indices(len(self.columns), 1)
        width = self.widths
        found = [spread[..., one, other] * (width[one] * width[other])]
        if self.correlation:
            own, least = _diagonal(spread), np.maximum(_diagonal(floor), _LEAST_VARIANCE)
            own = np.maximum(own, least) if deviation else np.where(own < least, np.nan, own)
            found.append(spread[..., one, other] / np.sqrt(own[..., one] * own[..., other]))
        return np.clip(np.concatenate(found, axis=-1), *self.limits)

    @property
    def limits(self) -> tuple[Array, Array]:
        """Covariances of places are at most 1/4 in size, correlations at most 1."""
        one, other = np.triu_indices(len(self.columns), 1)
        most = 0.25 * self.widths[one] * self.widths[other]
        most = np.append(most, np.ones(len(one))) if self.correlation else most
        return -most, most

    def precision(self, _: Measure | None = None) -> float:
        """Of a covariance at the middle, over its range of 1/2; of a correlation of even values, over that of 2."""
        size = math.sqrt(2.0) * Places(self.columns, self.measure).middle
        return max(size / 0.5, size / _EVEN_VARIANCE / 2.0 if self.correlation else 0.0)

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {**super().to_dict(), "correlation": self.correlation}


@dataclass(frozen=True)
class Regression(Joint):
    """Intercept and slopes of the first column on the others. Build one with :func:`linear_regression`."""

    kind: str = "linear regression"

    @property
    def names(self) -> list[str]:
        """The intercept, then the slopes."""
        target, *features = self.columns
        return [f"intercept of {target}", *(f"slope of {target} on {feature}" for feature in features)]

    @property
    def degrees(self) -> tuple[int, ...]:
        """Squares of the features, and the target itself."""
        return (1, *(2 for _ in self.columns[1:]))

    def estimate(self, measure: Measure, noisy: Array, deviation: float = 0.0) -> Array:
        """Least squares from noisy moments; the features' covariances are lifted to their noise, of this deviation."""
        means, spread, floor = Places.of(self.columns, measure).moments(noisy, deviation)
        # The root mean square of the noise's Frobenius norm, which its largest eigenvalue does not exceed.
        least = np.sqrt(np.sum(floor[..., 1:, 1:] ** 2, axis=(-2, -1)))
        features, added = lifted(np.nan_to_num(spread[..., 1:, 1:]), np.fmax(least, _LEAST_VARIANCE))
        slopes = np.clip(np.linalg.solve(features, spread[..., 1:, :1])[..., 0], -_STEEPEST, _STEEPEST)
        if not deviation:  # as Fieller (1954) has it: where features may not vary, slopes may be anything
            slopes = np.where(added[..., np.newaxis] > 0.0, np.nan, slopes)
        height = means[..., 0] - np.sum(means[..., 1:] * slopes, axis=-1)
        width, low = self.widths, np.array([low for low, _ in self.ranges])
        slopes = slopes * (width[0] / width[1:])
        intercept = low[0] + width[0] * height - slopes @ low[1:]
        found = np.concatenate([np.asarray(intercept)[..., np.newaxis], slopes], axis=-1)
        return np.asarray(np.clip(found, *self.limits), dtype=np.float64)

    @property
    def limits(self) -> tuple[Array, Array]:
        """As steep as steps can tell, and as far from 0 as such a plane can be where every feature is 0."""
        width, farthest = self.widths, np.abs(self.ranges).max(axis=1)
        slopes = _STEEPEST * width[0] / width[1:]
        most = np.append(farthest[0] + slopes @ farthest[1:], slopes)
        return -most, most

    def precision(self, _: Measure | None = None) -> float:
        """Of a slope between columns of even values, over its range of 2."""
        return math.sqrt(2.0) * Places(self.columns, self.measure).middle / _EVEN_VARIANCE / 2.0


@dataclass(frozen=True)
class Places:
    """Means and covariances of the places t in [0, 1] of some columns, as they follow from a measure's numbers."""

    columns: tuple[str, ...]
    measure: Products

    @classmethod
    def of(cls, columns: tuple[str, ...], measure: Measure) -> Places:
        """From a measure that serves them."""
        assert isinstance(measure, Products)
        return cls(columns, measure)

    def _weights(self, *powers: str) -> Array:
        return _coefficients(tuple((factor.degree, powers.count(factor.column)) for factor in self.measure.factors))

    def moments(self, noisy: Array, deviation: float) -> tuple[Array, Array, Array]:
        """Means, covariances, and the deviation of the noise in the covariances.

        With noise they are brought within what places can have. Without, they are left: a draw that no data could make
        must not look like certainty. A draw without rows says nothing, and is NaN, and so are a correlation and a slope
        if there a variance is not above 0.
        """
        size, degrees = len(self.columns), {factor.column: factor.degree for factor in self.measure.factors}
        rows = noisy.sum(axis=-1)[..., np.newaxis]
        rows = np.maximum(rows, 1.0) if deviation else np.where(rows < 1.0, np.nan, rows)
        means = noisy @ np.stack([self._weights(name) for name in self.columns], axis=-1) / rows
        means = np.clip(means, 0.0, 1.0) if deviation else means
        spread = np.zeros((*means.shape, size))
        for i, j in itertools.combinations_with_replacement(range(size), 2):
            if i == j and degrees[self.columns[i]] < 2:
                continue
            one, other = means[..., i], means[..., j]
            found = noisy @ self._weights(self.columns[i], self.columns[j]) / rows[..., 0] - one * other
            if deviation:
                # P(both) of two events with these probabilities is the extreme case (Frechet 1951), and t^2 <= t.
                most = np.minimum(one * (1.0 - other), other * (1.0 - one))
                least = 0.0 if i == j else -np.minimum(one * other, (1.0 - one) * (1.0 - other))
                found = np.clip(found, least, most)
            spread[..., i, j] = spread[..., j, i] = found
        floor = deviation / rows[..., np.newaxis] * self.norms(means)
        return means, spread, floor

    def norms(self, means: Array) -> Array:
        """|c| for each pair: c are the coefficients of (t_i - m_i)(t_j - m_j), products of those of its factors."""
        degrees = [next(each.degree for each in self.measure.factors if each.column == name) for name in self.columns]
        every = math.prod(degree + 1 for degree in degrees)
        line, square = np.empty(means.shape), np.empty(means.shape)
        for place, degree in enumerate(degrees):
            mean, i = means[..., place, np.newaxis], np.arange(degree + 1.0)
            second = i * (i - 1.0) / 2.0 if degree == 2 else i
            line[..., place] = ((i / degree - mean) ** 2).sum(axis=-1) / (degree + 1)
            square[..., place] = ((second - 2.0 * mean * i / degree + mean**2) ** 2).sum(axis=-1) / (degree + 1)
        found = line[..., :, np.newaxis] * line[..., np.newaxis, :]
        size = range(len(degrees))
        found[..., size, size] = square
        return np.sqrt(every * found)

    @property
    def middle(self) -> float:
        """The largest |c| of two different columns if every mean is in the middle."""
        found = self.norms(np.full(len(self.columns), 0.5))
        return float(np.max(found[np.triu_indices(len(self.columns), 1)]))


@functools.lru_cache(maxsize=1024)
def _coefficients(powers: tuple[tuple[int, int], ...]) -> Array:
    """Of a product of powers, for factors of (degree, power): t^a has C(i, a)/C(d, a) at the i-th polynomial."""
    each = [np.array([math.comb(i, a) / math.comb(d, a) for i in range(d + 1)]) for d, a in powers]
    found = functools.reduce(np.kron, each)
    found.setflags(write=False)
    return found


def covariance(*columns: str, bounds: Bounds, correlation: bool = False) -> Covariances:
    """Covariances of all pairs of columns, clipped to their ``bounds``, and with ``correlation`` correlations, too.

    ``bounds``: (lowest, highest) for each column, as a list in the order of the columns or by name; known without
    looking at the data. All of it is one release. Rows without one of the values do not count.

    >>> covariance("age", "income", bounds=[(0, 120), (0, 200_000)]).names
    ['covariance of age and income']
    """
    names = column_names(list(columns))
    if len(names) < 2:
        raise InvalidInput(f"columns={shown(names)} of a covariance are too few: pass two or more different ones.")
    validation.choice("correlation", correlation, (True, False))
    made = Covariances(columns=names, ranges=_ranges(names, bounds), correlation=correlation)
    _ = made.measure  # refuses too many columns, and bounds that are none
    return made


def linear_regression(target: str, on: str | Sequence[str], bounds: Bounds) -> Regression:
    """Intercept and slopes of ``target`` on one or several columns, by least squares on the clipped values.

    ``bounds``: (lowest, highest) for each column, by name or as a list with the target first. All of it is one release.
    Rows without one of the values do not count. The intercept is the fitted value where every feature is 0.

    >>> linear_regression("income", on=["age"], bounds={"income": (0, 200_000), "age": (0, 120)}).names
    ['intercept of income', 'slope of income on age']
    """
    names = column_names([target, *column_names(on, "on")])
    made = Regression(columns=names, ranges=_ranges(names, bounds))
    _ = made.measure
    return made


def _ranges(names: tuple[str, ...], bounds: object) -> tuple[tuple[float, float], ...]:
    """The bounds in the order of the columns."""
    if isinstance(bounds, Mapping):
        lacking = [name for name in names if name not in bounds]
        if lacking or len(bounds) > len(names):
            raise InvalidInput(
                f"bounds={shown(dict(bounds))} are not those of columns={shown(list(names))}: pass (lowest, highest) "
                "for each of them, and for no other."
            )
        bounds = [bounds[name] for name in names]
    listed = isinstance(bounds, (list, tuple)) and len(bounds) == len(names)
    if not listed or not all(isinstance(each, (list, tuple)) for each in bounds):  # type: ignore[attr-defined]
        raise InvalidInput(
            f"bounds={shown(bounds)} are not one for each of columns={shown(list(names))}: pass a list with (lowest, "
            "highest) for each, known without looking at the data."
        )
    return tuple(tuple(each) for each in bounds)  # type: ignore[attr-defined]


def _diagonal(matrices: Array) -> Array:
    return np.diagonal(matrices, axis1=-2, axis2=-1)

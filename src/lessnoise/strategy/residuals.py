"""Strategies for marginals: weighted tables of some attributes, or what each table adds to the smaller ones.

The space of tables splits into one subspace for each set T of attributes, with projections P_T = x_(i in T) (I - J/n_i)
x_(i not in T) J/n_i, J all ones, of dimension m_T = prod_(i in T) (n_i - 1). For marginals, W^T W = sum_T l_T P_T, and
every strategy here has A^T A = sum_T c_T P_T, so that the error is sum_T l_T m_T / c_T. All columns have the same l2
norm (sum_T c_T m_T / N)^(1/2), and c_T ~ l_T^(1/2) gives the least error of all strategies for Gaussian noise,
(sum_T l_T^(1/2) m_T)^2 / N: by Cauchy and Schwarz, this is the singular-value bound itself.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import root_up, round_up, settle
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.strategy.base import Strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.workload import Workload

_UNIT = 2.0**-53
_EXACT = 2.0**53
_MOST_SIZES = 1 << 18  # of all columns together

Set = tuple[int, ...]


@dataclass(frozen=True)
class Residuals(Strategy):
    """One block of rows for each of some ``sets`` of attributes, times its weight.

    The block of S is x_(i in S) U_i x_(i not in S) 1^T with n_i - 1 orthonormal rows U_i (Helmert's), orthogonal to 1:
    what the marginal of S says beyond those of its subsets. With ``tables``, U_i = I: the marginals themselves.

    >>> both = Residuals((2, 2), ((0,), (1,)), (1.0, 1.0), tables=True)
    >>> both.measure(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0, 4.0, 6.0]
    """

    sizes: tuple[int, ...]
    sets: tuple[Set, ...]
    weights: tuple[float, ...]
    tables: bool = False

    kind: ClassVar[str] = "residuals"

    def __post_init__(self) -> None:
        sizes = validation.shape(self.sizes, "sizes")
        sets = tuple(self._checked(each, sizes) for each in validation.entries("sets", self.sets))
        weights = tuple(validation.positive("weight", each) for each in validation.entries("weights", self.weights))
        if not sets or len(set(sets)) < len(sets) or len(sets) != len(weights):
            raise InvalidInput(f"sets={shown(sets)} must be different, with one weight each: list each set once.")
        if not isinstance(self.tables, bool):
            raise InvalidInput(f"tables={shown(self.tables)} is not True or False: pass one of them.")
        settle(self, sizes=sizes, sets=sets, weights=weights)

    def _checked(self, each: object, sizes: tuple[int, ...]) -> Set:
        if not isinstance(each, (list, tuple)):
            raise InvalidInput(f"set={shown(each)} of attributes is not a list: name their places.")
        places = [validation.whole_number("attribute", place, 0) for place in each]
        least = 1 if self.tables else 2
        if places != sorted(set(places)) or any(i >= len(sizes) or sizes[i] < least for i in places):
            raise InvalidInput(
                f"set={shown(each)} of sizes={shown(sizes)}: name different places, in order, of {least} values or more."
            )
        return tuple(places)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return self.sizes

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return sum(self._lengths)

    @property
    def whole(self) -> bool:
        """Tables with whole weights."""
        return self.tables and all(weight == round(weight) for weight in self.weights)

    @property
    def nonnegative(self) -> bool:
        """Tables have no entry below 0."""
        return self.tables

    @functools.cached_property
    def _lengths(self) -> list[int]:
        return [math.prod(self.sizes[i] - (not self.tables) for i in each) for each in self.sets]

    @functools.cached_property
    def _scales(self) -> list[Array]:
        """One double for each row: its entries are that times whole numbers, Helmert's before their scaling."""
        if self.tables:
            return [np.full(length, weight) for length, weight in zip(self._lengths, self.weights, strict=True)]
        return [weight * _scale(self.sizes, each) for each, weight in zip(self.sets, self.weights, strict=True)]

    @functools.cached_property
    def spectrum(self) -> dict[Set, float]:
        """c_T for every T where it is not 0."""
        outside = [weight**2 * _outside(self.sizes, each) for each, weight in zip(self.sets, self.weights, strict=True)]
        if not self.tables:
            return dict(zip(self.sets, outside, strict=True))
        below = closure(self.sets, self.sizes)
        return dict(zip(below, (contains(below, self.sets) @ np.asarray(outside)).tolist(), strict=True))

    def measure(self, table: Array) -> Array:
        """A x: whole sums first, each times the number of its row."""
        return np.concatenate(
            [
                scale * part
                for scale, part in zip(self._scales, self._split(table, self.sets, self.tables), strict=True)
            ],
            axis=-1,
        )

    def error(self, table: Array) -> float:
        """Of sums that may be rounded, or, for ordinary counts, of the product with the row's number alone."""
        sizes = np.abs(table).reshape(*table.shape[: table.ndim - len(self.sizes)], -1).sum(axis=-1)
        total = 1.01 * float(np.max(sizes, initial=0.0))
        if not math.isfinite(total):
            return math.inf
        largest = 1.0 if self.tables else max(math.prod(self.sizes[i] - 1 for i in each) for each in self.sets)
        most = total * max(self.weights)  # every entry of A is at most its block's weight
        if total * largest < _EXACT and bool((table == np.rint(table)).all()):
            exact = self.tables and all(math.frexp(weight)[0] == 0.5 for weight in self.weights)
            return 0.0 if exact or (self.whole and most < _EXACT) else 1.01 * _UNIT * most
        return 1.01 * _UNIT * (sum(self.sizes) + 3 * len(self.sizes) + 4) * (most + math.ulp(0.0))

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x: the row's number times a whole combination of the cells."""
        block = int(np.searchsorted(np.cumsum(self._lengths), index, side="right"))
        place = index - sum(self._lengths[:block])
        each = self.sets[block]
        inside = dict(
            zip(each, np.unravel_index(place, [self.sizes[i] - (not self.tables) for i in each]), strict=True)
        )
        whole = bool((table == np.rint(table)).all()) and bool(np.abs(table).sum() * self._growth(each) < 2.0**60)
        values = table.astype(np.int64) if whole else np.vectorize(Fraction, otypes=[object])(table)
        for axis, size in enumerate(self.sizes):
            row = np.ones(size, dtype=np.int64)
            if axis in inside and self.tables:
                row = (np.arange(size) == inside[axis]).astype(np.int64)
            elif axis in inside:
                k = int(inside[axis]) + 1
                row = np.where(np.arange(size) < k, 1, np.where(np.arange(size) == k, -k, 0))
            values = np.dot(row if whole else row.astype(object), values.reshape(size, -1))
        return Fraction(float(self._scales[block][place])) * Fraction(values.item())

    def _growth(self, each: Set) -> float:
        return float(math.prod(self.sizes[i] for i in each))

    def fit(self, measured: Array) -> Array:
        """The least-squares table: A^T y, and each of its parts P_T over c_T."""
        front = measured.shape[:-1]
        parts = np.split(measured.reshape(-1, self.rows), np.cumsum(self._lengths)[:-1], axis=-1)
        scaled = [scale * part for scale, part in zip(self._scales, parts, strict=True)]
        if self.tables:
            added = self._join(scaled, self.sets, True)
            below = list(self.spectrum)
            spread = self._split(added, below, False)
            scaled = [self._share(each) * part for each, part in zip(below, spread, strict=True)]
            found = self._join(scaled, below, False)
        else:
            found = self._join([p / self.spectrum[s] for s, p in zip(self.sets, scaled, strict=True)], self.sets, False)
        return found.reshape(*front, *self.sizes)

    def _share(self, each: Set) -> Array:
        """With R whole residuals of T, R^T diag(..) R = P_T / c_T."""
        return _scale(self.sizes, each) ** 2 / (self.spectrum[each] * _outside(self.sizes, each))

    def columns(self) -> list[Moves]:
        """Of tables, one: all columns have the same sizes. Of residuals, all; few of them, if they are many."""
        if self.tables:
            return [Moves.of(self.weights)]
        kinds = [range(1, size) if size > 1 else range(1) for size in self.sizes]  # cells 0 and 1 have the same sizes
        few = math.prod(map(len, kinds)) * self.rows > _MOST_SIZES
        chosen = zip(*((kind[0], kind[len(kind) // 2], kind[-1]) for kind in kinds), strict=True)
        return [self._column(cell) for cell in dict.fromkeys(chosen if few else itertools.product(*kinds))]

    def envelope(self) -> Moves | None:
        """The largest entry of every row, where the columns are many."""
        if self.tables or math.prod(max(size - 1, 1) for size in self.sizes) * self.rows <= _MOST_SIZES:
            return None
        return self._column(None)

    def _column(self, cell: Sequence[int] | None) -> Moves:
        sizes: list[float] = []
        for each, scale in zip(self.sets, self._scales, strict=True):
            entries = np.ones(1)
            for i in each:
                k = np.arange(1, self.sizes[i])
                own = k if cell is None else np.where(k > cell[i], 1, np.where(k == cell[i], k, 0))
                entries = np.multiply.outer(entries, own).ravel()
            sizes += (entries * scale * (1.0 + 4.0 * _UNIT)).tolist()  # whole numbers times doubles, rounded up
        return Moves.of(sizes)

    def norm(self, order: int) -> float:
        """The same l2 norm for every column, the largest l1 norm; both with the rounding of the rows' numbers."""
        if self.tables:
            return self.columns()[0].norm(order)
        total = Fraction(0)
        for each, weight in zip(self.sets, self.weights, strict=True):
            if order == 2:  # a column of U_i has the square 1 - 1/n_i
                own = Fraction(weight) ** 2 * math.prod(
                    (1 - Fraction(1, self.sizes[i]) for i in each), start=Fraction(1)
                )
            else:
                own = Fraction(weight) * Fraction(math.prod(_largest(self.sizes[i]) for i in each))
            total += own * (1 + Fraction(2 * (3 * len(each) + 3), 2**53))
        total *= 1 + Fraction(1, 2**60)
        return root_up(total) if order == 2 else round_up(total)

    def distance(self, order: int) -> float:
        """Between cells that differ in all attributes, for tables; for residuals, block by block the furthest apart.

        Two columns of a block have the product prod_i (d_i - 1/n_i), d_i = 1 where they agree: it is the most negative
        if they differ in the attribute of fewest values alone.
        """
        total = Fraction(0)
        for each, weight in zip(self.sets, self.weights, strict=True):
            if each and self.tables:
                total += 2 * Fraction(weight) ** order
            elif each:
                square = math.prod((1 - Fraction(1, self.sizes[i]) for i in each), start=Fraction(1))
                apart = 1 + Fraction(1, min(self.sizes[i] for i in each) - 1)
                total += 2 * Fraction(weight) ** 2 * square * apart * (1 + Fraction(3 * len(each) + 3, 2**51))
        if order == 2:
            return root_up(total)
        return round_up(total) if self.tables else 2.0 * self.norm(1)

    def trace(self, workload: Workload) -> float:
        """sum_T tr(W^T W P_T) / c_T; a product over the attributes for every part of the workload."""
        found = asked = seen = 0.0
        for weight, factors in workload.terms():
            diagonals = [float(factor.diagonal().sum()) for factor in factors]
            means = [_mean(factor.kind, factor.size, factor) for factor in factors]
            asked += weight * math.prod(diagonals)
            for each, c in self.spectrum.items():
                own = weight * math.prod(
                    max(diagonals[i] - means[i], 0.0) if i in each else means[i] for i in range(len(factors))
                )
                found, seen = found + own / c, seen + own
        return found if asked - seen <= 1e-9 * asked else math.inf

    def variances(self, questions: Array) -> Array:
        """q (A^T A)^+ q^T = sum_T q P_T q^T / c_T."""
        below = list(self.spectrum)
        given = np.asarray(questions, dtype=np.float64).reshape(-1, *self.sizes)
        parts = self._split(given, below, False)
        return np.asarray(sum((part**2 @ self._share(each)) for each, part in zip(below, parts, strict=True)))

    def _split(self, table: Array, sets: Sequence[Set], tables: bool) -> list[Array]:
        """The rows of every set before scaling. Attribute by attribute, sets that begin alike share the work."""
        front = table.shape[: table.ndim - len(self.sizes)]
        found: dict[Set, Array] = {}

        def go(values: Array, axis: int, among: list[Set]) -> None:
            if axis == len(self.sizes):
                found[among[0]] = values.reshape(*front, -1)
                return
            size, after = self.sizes[axis], math.prod(self.sizes[axis + 1 :])
            cut = values.reshape(-1, size, after)
            inside = [each for each in among if axis in each]
            outside = [each for each in among if axis not in each]
            if outside:
                go(cut.sum(axis=1), axis + 1, outside)
            if inside:
                go(cut if tables else _residual(cut), axis + 1, inside)

        go(np.asarray(table, dtype=np.float64), 0, list(sets))
        return [found[each] for each in sets]

    def _join(self, parts: Sequence[Array], sets: Sequence[Set], tables: bool) -> Array:
        """The transpose of ``_split``, with one axis in front."""
        given = dict(zip(sets, parts, strict=True))
        count = parts[0].shape[0]

        def go(axis: int, among: list[Set], rows: int) -> Array:
            if axis == len(self.sizes):
                return given[among[0]].reshape(count * rows, 1)
            size, after = self.sizes[axis], math.prod(self.sizes[axis + 1 :])
            found = np.zeros((count * rows, size, after))
            inside = [each for each in among if axis in each]
            outside = [each for each in among if axis not in each]
            if outside:
                found += go(axis + 1, outside, rows).reshape(count * rows, 1, after)
            if inside:
                own = size if tables else size - 1
                below = go(axis + 1, inside, rows * own).reshape(count * rows, own, after)
                found += below if tables else _residual_transposed(below)
            return found.reshape(count * rows, size * after)

        return go(0, list(sets), 1).reshape(count, *self.sizes)

    def __str__(self) -> str:
        return f"{len(self.sets)} {'tables' if self.tables else 'residual tables'} of {len(self.sizes)} attributes"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {"kind": self.kind, "sizes": list(self.sizes), "sets": [list(s) for s in self.sets]}
        return {**values, "weights": list(self.weights), "tables": self.tables}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Residuals:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "sizes", "sets", "weights", "tables"), "strategy")
        return cls(given["sizes"], given["sets"], given["weights"], given["tables"])


def _residual(values: Array) -> Array:
    """Helmert's rows 1, ..., n - 1 along the middle axis, in whole numbers: x_0 + .. + x_(k-1) - k x_k."""
    k = np.arange(1.0, values.shape[1])[:, np.newaxis]
    return np.asarray(np.cumsum(values, axis=1)[:, :-1] - k * values[:, 1:])


def _residual_transposed(values: Array) -> Array:
    k = np.arange(1.0, values.shape[1] + 1.0)[:, np.newaxis]
    found = np.zeros((values.shape[0], values.shape[1] + 1, values.shape[2]))
    found[:, :-1] = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    found[:, 1:] -= k * values
    return found


def _scale(sizes: Sequence[int], each: Set) -> Array:
    """1/sqrt(k (k + 1)), multiplied over the attributes, for all rows."""
    found = np.ones(1)
    for i in each:
        k = np.arange(1.0, sizes[i])
        found = np.multiply.outer(found, 1.0 / np.sqrt(k * (k + 1.0))).ravel()
    return found


def _largest(size: int) -> float:
    """The largest l1 norm of a column of Helmert's rows, rounded up."""
    k = np.arange(1.0, size)
    scales = 1.0 / np.sqrt(k * (k + 1.0))
    after = np.cumsum(scales[::-1])[::-1]
    return float(np.max(after - scales + k * scales, initial=float(after[0]))) * (1.0 + 4.0 * size * _UNIT)


def _mean(kind: str, size: int, factor: Any) -> float:  # noqa: ANN401
    """1^T F^T F 1 / n."""
    if kind in ("identity", "total"):
        return 1.0 if kind == "identity" else float(size)
    return float(np.square(factor.apply(np.ones(size), 0)).sum()) / size


def _outside(sizes: Sequence[int], each: Set) -> float:
    return float(math.prod(size for i, size in enumerate(sizes) if i not in each))


def closure(sets: Sequence[Set], sizes: Sequence[int]) -> list[Set]:
    """All subsets of the sets, without attributes of one value.

    >>> closure([(0, 1), (1, 2)], [2, 3, 1])
    [(), (0,), (1,), (0, 1)]
    """
    found = set()
    for each in {tuple(i for i in each if sizes[i] > 1) for each in sets}:
        for order in range(len(each) + 1):
            found |= set(itertools.combinations(each, order))
    return sorted(found, key=lambda each: (len(each), each))


def contains(below: Sequence[Set], above: Sequence[Set]) -> NDArray[np.bool_]:
    """Which of the sets ``below`` (rows) are subsets of which ``above`` (columns)."""
    places = max((i for each in (*below, *above) for i in each), default=0) + 1
    bits = [np.zeros((len(sets), places)) for sets in (below, above)]
    for table, sets in zip(bits, (below, above), strict=True):
        for row, each in enumerate(sets):
            table[row, list(each)] = 1.0
    return np.asarray(bits[0] @ bits[1].T == bits[0].sum(axis=1, keepdims=True))

"""The matrices A that are measured, from their descriptions: norms of their columns and of differences of two columns.

All entries are dyadic rationals: whole numbers times 2^exponent, so that sums and powers of them are exact. What a
description says of its own norms is not read. Where a table is too large to list all columns, there are proved ends.
"""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from flint import arb, arb_poly, fmpz_mat

from lessnoise_verify.balls import ends, working
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import LARGEST_DIMENSION, Fields, NotCovered, Unreadable, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Column = dict[int, int]  # row: entry; other entries are 0
Sizes = tuple[int, ...]  # of the entries of a column, the largest first
Ends = tuple[Fraction, Fraction]

_MOST_ENTRIES: Final = 4 * 10**6  # that are looked at
_MOST_SIZES: Final = 10**5  # in a list of columns
_MOST_STEPS: Final = 2 * 10**6  # through all pairs of columns
_GRAM_CELLS, _GRAM_BITS = 1100, 400  # of the products of all columns
_PLACES: Final = 5  # columns of which pairs are tried
_LONGEST: Final = 10**6  # cells of a Toeplitz matrix, or values of attributes


class Strategy:
    """A matrix for tables of one shape; ``rows`` numbers are measured, told apart by numbers below ``span``."""

    def __init__(self, shape: tuple[int, ...], rows: int, exponent: int = 0, nonnegative: bool = True) -> None:
        self.shape, self.rows, self.exponent, self.nonnegative = shape, rows, exponent, nonnegative
        self.cells, self.span = math.prod(shape), rows

    def column(self, cell: int) -> Column:
        """One column, in units of 2^exponent."""
        raise NotCovered("this strategy is no part of another one.")

    def rows_of(self, cells: int) -> int:
        """How many rows are measured of a block that has only the first cells; rows of zeros are left out."""
        return self.rows if cells == self.cells else cells

    def listed(self, cells: int) -> Iterable[Iterable[int]]:
        """The entries of each of the first columns; of columns alike, one will do."""
        seen = 0
        for cell in range(cells):
            entries = self.column(cell).values()
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                raise NotCovered(f"a strategy of {self.cells} cells has too many entries to be checked.")
            yield entries

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def most(self, order: int, cells: int) -> int:
        """The largest sum of the sizes of a column's entries, or of their squares, among the first cells."""
        return max(_power(each, order) for each in self.listed(cells))

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def kinds(self, cells: int) -> set[Sizes] | None:
        """The sizes in the first columns; None if they are too many."""
        found: set[Sizes] = set()
        for each in self.listed(cells):
            found.add(_sorted(each))
            if len(found) * len(next(iter(found))) > _MOST_SIZES:
                return None
        return found

    def majorant(self) -> Sizes:
        """Sizes whose n largest add up to at least as much as those of any column, for every n."""
        most = [0]
        for each in self.listed(self.cells):
            sums = list(itertools.accumulate(_sorted(each))) or [0]
            longest = max(len(most), len(sums))
            most = [max(one[min(n, len(one) - 1)] for one in (most, sums)) for n in range(longest)]
        return _sorted(after - before for before, after in itertools.pairwise([0, *most]))

    def power(self, order: int) -> Ends:
        """Ends of the largest l1 norm of a column, or of the square of its l2 norm."""
        found = self.most(order, self.cells) * self.unit(order)
        return found, found

    def unit(self, order: int = 1) -> Fraction:
        """Of an entry, or of its square."""
        return Fraction(1, 2 ** (-order * self.exponent))

    def moves(self, sizes: Iterable[int]) -> Moves:
        """A change of the answers, from the entries of a column."""
        return Moves.of((size * self.unit(), 1) for size in sizes)

    def pairs(self) -> tuple[list[Sizes], bool]:
        """Differences of columns; and whether all are there."""
        places = sorted({round(share / (_PLACES - 1) * (self.cells - 1)) for share in range(_PLACES)})
        if self.cells <= _GRAM_CELLS and self.cells**2 * len(self.column(0)) <= _MOST_STEPS:
            places = list(range(self.cells))
        try:
            columns = [self.column(place) for place in places]
        except NotCovered:  # too long
            return [], False
        found = {_sorted_difference(*two) for two in itertools.combinations(columns, 2)}
        return list(found), len(places) == self.cells

    def apart(self, order: int) -> Ends:
        """Ends of the largest l1 distance of two columns, or of the square of their l2 distance."""
        if order == 2 and self.cells <= _GRAM_CELLS and self.cells * self.rows <= _MOST_STEPS:
            columns = [self.column(cell) for cell in range(self.cells)]
            if max(_power(column.values(), 1) for column in columns).bit_length() <= _GRAM_BITS:
                found = _largest_distance(columns) * self.unit(2)
                return found, found
        pairs, complete = self.pairs()
        least = max((_power(each, order) for each in pairs), default=0) * self.unit(order)
        return least, least if complete else self.furthest(order)

    def furthest(self, order: int) -> Fraction:
        """At least the distance: |a - b|_1 <= |a|_1 + |b|_1, |a - b|^2 <= |a|^2 + |b|^2 if nothing is negative."""
        return self.power(order)[1] * (2 if order == 1 or self.nonnegative else 4)


def _largest_distance(columns: list[Column]) -> int:
    """The largest |a|^2 + |b|^2 - 2 <a, b>, by the products of all columns."""
    rows = set().union(*columns)
    matrix = fmpz_mat([[column.get(row, 0) for row in rows] for column in columns])
    products = (matrix * matrix.transpose()).tolist()
    squares = [row[place] for place, row in enumerate(products)]
    return max(
        int(square + max(other - 2 * product for other, product in zip(squares, row, strict=True)))
        for square, row in zip(squares, products, strict=True)
    )


def _power(entries: Iterable[int], order: int) -> int:
    return sum(map(abs, entries)) if order == 1 else sum(entry * entry for entry in entries)


def _sorted(entries: Iterable[int]) -> Sizes:
    return tuple(sorted((abs(entry) for entry in entries if entry), reverse=True))


def _sorted_difference(one: Column, other: Column) -> Sizes:
    return _sorted(one.get(row, 0) - other.get(row, 0) for row in one.keys() | other.keys())


def _shift(values: Iterable[float]) -> int:
    """The least s >= 0 with which all values are multiples of 2^-s."""
    return max((value.as_integer_ratio()[1].bit_length() - 1 for value in values), default=0)


def _whole(value: float, shift: int) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (shift + 1 - denominator.bit_length())


def _product(factors: Iterable[Fraction]) -> Fraction:
    return math.prod(factors, start=Fraction(1))


class Alike(Strategy):
    """All columns have the same sizes, and no two are further apart than ``pair``: cells, totals, tables, trees."""

    def __init__(self, shape: tuple[int, ...], rows: int, each: Sizes, pair: Sizes, exponent: int = 0) -> None:
        super().__init__(shape, rows, exponent)
        self.each, self.pair = _sorted(each), _sorted(pair)

    def column(self, cell: int) -> Column:
        """Of cells or a total along an axis, which may be part of a product."""
        return {cell % self.rows: 1} if self.each == (1,) and len(self.shape) == 1 else super().column(cell)

    def listed(self, cells: int) -> Iterable[Iterable[int]]:
        """One for all."""
        return [self.each]

    def pairs(self) -> tuple[list[Sizes], bool]:
        """No two are further apart."""
        return [self.pair], True

    def apart(self, order: int) -> Ends:
        """Exactly."""
        found = _power(self.pair, order) * self.unit(order)
        return found, found


class Dense(Strategy):
    """Every row of a matrix is measured."""

    def __init__(self, shape: tuple[int, ...], rows: int, values: list[float]) -> None:
        super().__init__(shape, rows, -_shift(values), min(values) >= 0.0)
        if self.cells * rows != len(values):
            raise Unreadable("the matrix of a strategy has not a column for each cell of its table.")
        self.values = values

    def column(self, cell: int) -> Column:
        """One column."""
        return {row: _whole(x, -self.exponent) for row, x in enumerate(self.values[cell :: self.cells]) if x}


class PIdentity(Strategy):
    """Every cell times a weight, stored as runs, then the rows of a matrix of sums; nothing is negative."""

    def __init__(self, weights: list[float], counts: list[int], sums: list[float]) -> None:
        self.ends, self.weights, self.sums = list(itertools.accumulate(counts)), weights, sums
        cells = self.ends[-1]
        super().__init__((cells,), cells + len(sums) // cells, -_shift([*weights, *sums]))
        if min(weights) <= 0.0 or min(sums, default=0.0) < 0.0:
            raise Unreadable("a strategy of weighted cells and sums has negative entries.")

    def rows_of(self, cells: int) -> int:
        """The cells, and the sums that are about one of them."""
        sums = (self.sums[at : at + cells] for at in range(0, len(self.sums), self.cells))
        return self.rows if cells == self.cells else cells + sum(map(any, sums))

    def column(self, cell: int) -> Column:
        """One column."""
        found = {cell: self.weights[bisect_right(self.ends, cell)]}
        found |= enumerate(self.sums[cell :: self.cells], self.cells)
        return {row: _whole(entry, -self.exponent) for row, entry in found.items() if entry}

    def listed(self, cells: int) -> Iterable[Iterable[int]]:
        """Without sums, one of each run."""
        if self.sums:
            return super().listed(cells)
        return ([_whole(x, -self.exponent)] for x in set(self.weights[: bisect_right(self.ends, cells - 1) + 1]))


class Hats(Strategy):
    """[I; T H], every column times the largest double that makes its sum at most ``length``; nothing is negative.

    Between nodes, ``step`` cells apart, a hat rises by (place + 1/2)/step, rounded to multiples of 2^-30, and the one
    before falls by as much. The first row of ``heights`` weighs each hat, the others are sums of hats.
    """

    _HAT: Final = 30

    def __init__(self, size: int, step: int, length: Fraction, nodes: int, heights: list[float]) -> None:
        super().__init__((size,), size + nodes + len(heights) // nodes - 1)
        if nodes != -(-size // step) + 1 or min(heights) < 0.0:
            raise Unreadable("the heights of hats are not one for each node, or negative.")
        shift, self.step, self.nodes = _shift(heights), step, nodes
        self.heights = [[_whole(x, shift) for x in heights[at : at + nodes]] for at in range(0, len(heights), nodes)]
        totals, self._one = [sum(column) for column in zip(*self.heights, strict=True)], 1 << (self._HAT + shift)
        scales = []
        for cell in range(size):
            node, before, after = self._halves(cell)
            most = length * self._one / (self._one + before * totals[node] + after * totals[node + 1])
            if not most < 2**1000:
                raise NotCovered("hats of so large a length are not covered.")
            scales.append(float(most) if Fraction(float(most)) <= most else math.nextafter(float(most), 0.0))
        of_scales = _shift(scales)
        self._scales, self.exponent = [_whole(scale, of_scales) for scale in scales], -of_scales - self._HAT - shift

    def _halves(self, cell: int) -> tuple[int, int, int]:
        """The node before a cell, how high its hat is and how high the next one; correctly rounded doubles."""
        rise = round((cell % self.step + 0.5) / self.step * 2.0**self._HAT)
        return cell // self.step, (1 << self._HAT) - rise, rise

    def rows_of(self, cells: int) -> int:
        """The cells, the hats over them, and the sums of such hats."""
        nodes = -(-cells // self.step) + 1
        return self.rows if cells == self.cells else cells + nodes + sum(any(row[:nodes]) for row in self.heights[1:])

    def column(self, cell: int) -> Column:
        """One column."""
        (node, before, after), (own, *sums) = self._halves(cell), self.heights
        found = {cell: self._one, self.cells + node: before * own[node], self.cells + node + 1: after * own[node + 1]}
        under = (before * heights[node] + after * heights[node + 1] for heights in sums)
        found |= enumerate(under, self.cells + self.nodes)
        return {row: entry * self._scales[cell] for row, entry in found.items() if entry}


class Nested(Strategy):
    """``coarse`` measures the sums of blocks, ``fine`` the cells of every block; the last block may have fewer cells.

    A column is one of the coarse and one of the fine strategy, one below the other. Those of the last block are the
    first of the fine strategy.
    """

    def __init__(self, coarse: Strategy, fine: Strategy, size: int) -> None:
        super().__init__((size,), 0, min(coarse.exponent, fine.exponent))
        self.coarse, self.fine, self.span = coarse, fine, coarse.span + coarse.cells * fine.span
        if not (coarse.cells - 1) * fine.cells < size <= coarse.cells * fine.cells:
            raise Unreadable(f"{size} cells are not {coarse.cells} blocks of {fine.cells}.")
        self.rows = self.rows_of(size)
        self._upper, self._lower = (1 << (each.exponent - self.exponent) for each in (coarse, fine))

    def rows_of(self, cells: int) -> int:
        """Those of the sums, and of every block."""
        full, left = divmod(cells, self.fine.cells)
        last = self.fine.rows_of(left) if left else 0
        return self.coarse.rows_of(full + (left > 0)) + full * self.fine.rows + last

    def column(self, cell: int) -> Column:
        """One column."""
        block, place = divmod(cell, self.fine.cells)
        found = {row: entry * self._upper for row, entry in self.coarse.column(block).items()}
        first = self.coarse.span + block * self.fine.span
        return found | {first + row: entry * self._lower for row, entry in self.fine.column(place).items()}

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def most(self, order: int, cells: int) -> int:
        """The largest coarse and the largest fine column, in the full blocks or in the last."""
        (full, left), found = divmod(cells, self.fine.cells), []
        upper, lower = self._upper if order == 1 else self._upper**2, self._lower if order == 1 else self._lower**2
        if full:
            found = [self.coarse.most(order, full) * upper + self.fine.most(order, self.fine.cells) * lower]
        if left:
            above = _power(self.coarse.column(full).values(), order)
            found.append(above * upper + self.fine.most(order, left) * lower)
        return max(found)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def kinds(self, cells: int) -> set[Sizes] | None:
        """Every coarse column with every fine one below it."""
        (full, left), found = divmod(cells, self.fine.cells), set()
        parts = [(self.coarse.kinds(full), self.fine.kinds(self.fine.cells))] if full else []
        parts += [({_sorted(self.coarse.column(full).values())}, self.fine.kinds(left))] if left else []
        for above, below in parts:
            if above is None or below is None or len(above) * len(below) > _MOST_SIZES // 10:
                return None
            found |= {self._joined(*two) for two in itertools.product(above, below)}
        return found

    def majorant(self) -> Sizes:
        """What majorizes two parts majorizes them joined."""
        return self._joined(self.coarse.majorant(), self.fine.majorant())

    def _joined(self, above: Sizes, below: Sizes) -> Sizes:
        return _sorted([*(size * self._upper for size in above), *(size * self._lower for size in below)])


class Product(Strategy):
    """A = A_1 x A_2 x ...: a column is the product of columns, and norms multiply."""

    def __init__(self, axes: list[Strategy]) -> None:
        shape, rows = tuple(axis.cells for axis in axes), math.prod(axis.rows for axis in axes)
        super().__init__(shape, rows, sum(axis.exponent for axis in axes), all(axis.nonnegative for axis in axes))
        self.axes = axes

    def column(self, cell: int) -> Column:
        """One column."""
        found, after = {0: 1}, self.cells
        for axis in self.axes:
            after //= axis.cells
            own = axis.column(cell // after % axis.cells)
            _check_few(len(found) * len(own))
            found = {row * axis.span + other: a * b for row, a in found.items() for other, b in own.items()}
        return found

    def power(self, order: int) -> Ends:
        """Norms multiply."""
        found = [axis.power(order) for axis in self.axes]
        return _product(low for low, _ in found), _product(high for _, high in found)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def kinds(self, cells: int) -> set[Sizes] | None:
        """All products of columns of the axes."""
        found: set[Sizes] = {(1,)}
        for axis in self.axes:
            own = axis.kinds(axis.cells)
            if own is None or len(found) * len(own) * max(map(len, own)) * max(map(len, found)) > _MOST_SIZES:
                return None
            found = {_sorted(a * b for a in one for b in two) for one in found for two in own}
        return found

    def majorant(self) -> Sizes:
        """What majorizes the columns of every axis majorizes their products."""
        found: Sizes = (1,)
        for axis in self.axes:
            own = axis.majorant()
            _check_few(len(own) * len(found))
            found = _sorted(a * b for a in found for b in own)
        return found


def _check_few(entries: int) -> None:
    if entries > _MOST_SIZES:
        raise NotCovered(f"columns of {entries} entries are not covered.")


class Toeplitz(Strategy):
    """A_ij = r_i c_(i-j) t_j for i >= j; without scales r and t, these are 1."""

    def __init__(self, size: int, coefficients: list[float], rows: list[float], columns: list[float]) -> None:
        self.parts, self.scaled = (coefficients, rows, columns), bool(rows or columns)
        self.shifts = [_shift(part) for part in self.parts]
        super().__init__((size,), size, -sum(self.shifts), min(coefficients) >= 0.0)
        if any(part and (len(part) != size or min(part) <= 0.0) for part in (rows, columns)):
            raise Unreadable("the scales of a Toeplitz matrix are not one for each cell, above 0.")
        if len(coefficients) > size or not coefficients[0]:
            raise Unreadable("a Toeplitz matrix has more coefficients than cells, or 0 for the first.")
        self._few = not self.scaled or size * len(coefficients) <= 4 * _MOST_SIZES

    def column(self, cell: int) -> Column:
        """One column."""
        (c, rows, columns), (of_c, of_r, of_t) = self.parts, self.shifts
        t = _whole(columns[cell], of_t) if columns else 1
        scales = (_whole(r, of_r) for r in rows[cell:]) if rows else itertools.repeat(1)
        both = zip(c[: self.cells - cell], scales, strict=False)
        return {cell + i: _whole(x, of_c) * r * t for i, (x, r) in enumerate(both) if x}

    def listed(self, cells: int) -> Iterable[Iterable[int]]:
        """Without scales, the others are beginnings of the first."""
        return super().listed(cells) if self.scaled else [self.column(0).values()]

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def power(self, order: int) -> Ends:
        """Of many columns, by a product of polynomials: coefficient n - 1 - j is sum_k |c_k|^p r_(j+k)^p."""
        if self._few:
            return super().power(order)
        if self.cells > _LONGEST:
            raise NotCovered(f"a Toeplitz matrix of {self.cells} cells is too long.")
        with working(192):
            c, r, t = ([abs(arb(x)) ** order for x in part or [1.0] * self.cells] for part in self.parts)
            sums, found = arb_poly(c) * arb_poly(r[::-1]), arb(0)
            for cell, scale in enumerate(t):
                found = found.max(sums[self.cells - 1 - cell] * scale)
            return ends(found)

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def kinds(self, cells: int) -> set[Sizes] | None:
        """All, if they are few."""
        return super().kinds(cells) if self._few else None

    def majorant(self) -> Sizes:
        """The largest scales everywhere, if the columns are many."""
        if self._few:
            return super().majorant()
        (c, *scales), (of_c, *others) = self.parts, self.shifts
        scale = math.prod(_whole(max(part), shift) for part, shift in zip(scales, others, strict=True) if part)
        return _sorted(_whole(x, of_c) * scale for x in c)


class Residuals(Strategy):
    """For each set S of attributes x_(i in S) U_i x_(i not in S) 1^T, times a weight; U_i Helmert's orthonormal rows.

    Row k of U is (1, ..., 1, -k, 0, ..., 0)/sqrt(k (k + 1)). The scale of each row is a double, computed with at most
    3 |S| + 1 roundings, so that an entry is off by a share of at most e = (3 |S| + 2) 2^-53.
    """

    def __init__(self, sizes: tuple[int, ...], sets: list[tuple[int, ...]], weights: list[float]) -> None:
        if any(sizes[i] < 2 for each in sets for i in each):
            raise Unreadable("a residual is about an attribute of one value.")
        super().__init__(sizes, sum(math.prod(sizes[i] - 1 for i in each) for each in sets), nonnegative=False)
        # With 10^15 cells at most, no product of doubles is outside their normal range.
        if min(weights) < 1e-280 or max(weights) > 1e280 or sum(sizes) > _LONGEST:
            raise NotCovered("residual tables of so extreme weights or sizes are not covered.")
        self.sets, self.weights, self._few = sets, weights, self.cells * self.rows <= 10 * _MOST_SIZES
        self._scales: list[list[float]] = []
        for each, weight in zip(sets, weights, strict=True) if self.rows <= _MOST_ENTRIES else ():
            scales = [1.0]  # products of doubles in this order, each correctly rounded
            for i in each:
                own = [1.0 / math.sqrt(k * (k + 1.0)) for k in range(1, sizes[i])]
                scales = [before * after for before in scales for after in own]
            self._scales.append([weight * scale for scale in scales])
        self.exponent = -max(map(_shift, self._scales), default=0)

    def column(self, cell: int) -> Column:
        """One column."""
        return self._column([cell // math.prod(self.shape[i + 1 :]) % size for i, size in enumerate(self.shape)])

    def _column(self, places: list[int] | None) -> Column:
        """Row k is 1 for the places before k, and -k for place k; without places, the largest size in every row."""
        if not self._scales:
            raise NotCovered(f"residual tables of {self.rows} numbers are too long for a list.")
        entries: list[int] = []
        for each, scales in zip(self.sets, self._scales, strict=True):
            signs = [1]
            for i in each:
                rows, at = range(1, self.shape[i]), None if places is None else places[i]
                own = [k if at is None else (k > at) - k * (k == at) for k in rows]
                signs = [before * after for before in signs for after in own]
            entries += [s and s * _whole(scale, -self.exponent) for s, scale in zip(signs, scales, strict=True)]
        return {row: entry for row, entry in enumerate(entries) if entry}

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def kinds(self, cells: int) -> set[Sizes] | None:
        """All, if they are few."""
        return super().kinds(cells) if self._few else None

    def majorant(self) -> Sizes:
        """The largest size in every row, if the columns are many."""
        return super().majorant() if self._few else _sorted(self._column(None).values())

    def _summed(self, of_set: Iterable[Ends], order: int, share: int = 1) -> Ends:
        """The sum over the sets of weight^order times a number, with the roundings of the entries."""
        low = high = Fraction(0)
        for each, weight, (least, most) in zip(self.sets, self.weights, of_set, strict=True):
            off, factor = Fraction(share * (3 * len(each) + 2), 2**53), Fraction(weight) ** order
            low, high = low + factor * least * (1 - off) ** order, high + factor * most * (1 + off) ** order
        return low, high

    def _square(self, each: tuple[int, ...]) -> Fraction:
        """Of the norm of a column of one set: 1 - 1/n for each attribute."""
        return _product(1 - Fraction(1, self.shape[i]) for i in each)

    def power(self, order: int) -> Ends:
        """All columns have the same l2 norm but for rounding; the first has the largest l1 norm.

        Column c of U has the l1 norm sqrt(c/(c + 1)) + sum_(k > c) 1/sqrt(k (k + 1)). It falls with c from c = 1 on, as
        c + 1 - sqrt(c (c + 2)) < 1, and is the same for columns 0 and 1.
        """
        if order == 2:
            return self._summed(((self._square(each),) * 2 for each in self.sets), 2)
        with working(128):
            norms = [ends(sum((arb(k * (k + 1)).rsqrt() for k in range(1, size)), arb(0))) for size in self.shape]
        return self._summed(
            ((_product(norms[i][0] for i in s), _product(norms[i][1] for i in s)) for s in self.sets), 1
        )

    def furthest(self, order: int) -> Fraction:
        """Set by set: columns have the product prod_i (d_i - 1/n_i), d_i = 1 where they agree and 0 elsewhere.

        It is the most negative, -1/(n - 1) of the square of the norm, if they differ in the attribute of fewest values
        alone. Roundings of both columns add at most sqrt(2) e to the distance, as that is at least sqrt(2) norms.
        """
        if order == 1:
            return super().furthest(1)
        apart = (1 + Fraction(1, min(self.shape[i] for i in each) - 1) if each else Fraction(0) for each in self.sets)
        return self._summed(((2 * self._square(s) * a,) * 2 for s, a in zip(self.sets, apart, strict=True)), 2, 2)[1]


# Reading.


def read_strategy(given: Fields) -> Strategy:
    """The matrix that is described."""
    kind = given.choice("kind", *_LINES, "product", "residuals")
    if kind == "product":
        axes = [_read_line(axis) for axis in given.objects("axes", 64)]
        found: Strategy = Product(axes) if axes else _refuse(given)
    elif kind == "residuals":
        found = _read_residuals(given)
    else:
        found = _LINES[kind](given)
    given.end()
    if found.cells > LARGEST_DIMENSION:
        raise Unreadable(f"{given.name} is for more than 10^15 cells.")
    return found


def _refuse(given: Fields) -> NoReturn:
    raise Unreadable(f"{given.name} is no strategy of a known form.")


def _read_line(given: Fields, *kinds: str) -> Strategy:
    """A strategy along one axis."""
    given.choice("kind", *(kinds or _LINES))
    found = read_strategy(given)
    return found if len(found.shape) == 1 else _refuse(given)


def _matrix(given: Fields) -> tuple[int, int, list[float]]:
    """Rows, columns and entries, row by row."""
    rows, columns = read_shape(given, "shape", 2)
    values = numbers({"float64": given.text("float64")}, given.name)
    given.end()
    return (rows, columns, values) if len(values) == rows * columns else _refuse(given)


def read_shape(given: Fields, name: str, length: int | None = None) -> tuple[int, ...]:
    """A list of whole numbers from 1 on."""
    sizes = given.items(name, 64)
    inside = Fields({str(place): size for place, size in enumerate(sizes)}, f"{given.name}.{name}")
    shape = tuple(inside.whole(str(place)) for place in range(len(sizes)))
    return shape if shape and length in (None, len(shape)) else _refuse(given)


def _read_matrix(given: Fields) -> Strategy:
    rows, _, values = _matrix(given.fields("matrix"))
    return Dense(read_shape(given, "table"), rows, values)


def _read_cells(given: Fields) -> Strategy:
    shape = read_shape(given, "table")
    cells = math.prod(shape)
    return Alike(shape, cells, (1,), (1, 1) if cells > 1 else ())


def _read_p_identity(given: Fields) -> Strategy:
    weights = given.fields("weights")
    values, counts = weights.numbers("values"), weights.items("counts")
    weights.end()
    if not values or len(values) != len(counts) or any(type(n) is not int or not 0 < n <= 10**15 for n in counts):
        _refuse(weights)
    if given.take("sums") is None:
        return PIdentity(values, counts, [])
    _, columns, sums = _matrix(given.fields("sums"))
    return PIdentity(values, counts, sums) if columns == sum(counts) else _refuse(given)


def _read_hats(given: Fields) -> Strategy:
    rows, nodes, heights = _matrix(given.fields("heights"))
    size, step = given.whole("size"), given.whole("step")
    if size * (rows + 2) > _MOST_ENTRIES:
        raise NotCovered(f"hats over {size} cells are too many.")
    return Hats(size, step, given.positive("length"), nodes, heights)


def _read_nested(given: Fields) -> Strategy:
    coarse = _read_line(given.fields("coarse"), "p-identity")
    return Nested(coarse, _read_line(given.fields("fine"), "p-identity", "hats", "nested"), given.whole("size"))


def _read_toeplitz(given: Fields) -> Strategy:
    names = ("coefficients", "row_scales", "column_scales")
    parts = [_matrix(given.fields(name)) if name in given or name == names[0] else (1, 0, []) for name in names]
    if any(rows != 1 for rows, _, _ in parts):
        _refuse(given)
    return Toeplitz(given.whole("size"), *(values for _, _, values in parts))


def _read_residuals(given: Fields) -> Strategy:
    sizes, weights, tables = read_shape(given, "sizes"), given.numbers("weights"), given.truth("tables")
    sets = [tuple(each) if isinstance(each, list) else _refuse(given) for each in given.items("sets", 10**5)]
    for each in sets:
        if any(type(i) is not int or not 0 <= i < len(sizes) for i in each) or list(each) != sorted(set(each)):
            _refuse(given)
    if not sets or len(sets) != len(weights) or len(set(sets)) < len(sets) or min(weights) <= 0.0:
        _refuse(given)
    if not tables:
        return Residuals(sizes, sets, weights)
    shift = _shift(weights)
    whole = tuple(_whole(weight, shift) for weight in weights)
    # Two cells that differ in all attributes of several values differ in every table that has one.
    pair = [entry for each, entry in zip(sets, whole, strict=True) for i in each[:1] if max(sizes[i] for i in each) > 1]
    return Alike(sizes, sum(math.prod(sizes[i] for i in each) for each in sets), whole, (*pair, *pair), -shift)


_LINES: dict[str, Callable[[Fields], Strategy]] = {
    "matrix": _read_matrix,
    "cells": _read_cells,
    "total": lambda given: Alike((given.whole("cells"),), 1, (1,), ()),
    "p-identity": _read_p_identity,
    "hats": _read_hats,
    "nested": _read_nested,
    "toeplitz": _read_toeplitz,
}

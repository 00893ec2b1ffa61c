"""The matrices A that are measured, from their descriptions: norms of their columns and of differences of two columns.

All entries are rational, so that sums and powers of them are exact. What a description says of its own norms is not
read. Where the columns are too many to list, there are proved ends.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from flint import arb, arb_mat, arb_poly, fmpq

from lessnoise_verify.balls import ends, working
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import LARGEST_DIMENSION, Fields, NotCovered, Unreadable, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Column = dict[int, fmpq]  # row: entry; other entries are 0
Sizes = tuple[fmpq, ...]  # of the entries of a column, the largest first
Ends = tuple[Fraction, Fraction]

_MOST_ENTRIES: Final = 4 * 10**6  # that are looked at
_MOST_SIZES: Final = 10**5  # in a list of columns
_MOST_STEPS: Final = 2 * 10**6  # through all pairs of columns
_PLACES: Final = 5  # columns that are there for certain, of which pairs are tried
_LONGEST: Final = 10**6  # cells of a Toeplitz matrix, or values of attributes
_ZERO: Final = fmpq(0)


class Strategy:
    """A matrix for tables of one shape; ``rows`` numbers are measured, told apart by numbers below ``span``."""

    def __init__(self, shape: tuple[int, ...], rows: int, nonnegative: bool = True) -> None:
        self.shape, self.rows, self.nonnegative = shape, rows, nonnegative
        self.cells, self.span = math.prod(shape), rows

    def column(self, cell: int) -> Column:
        """One column."""
        raise NotCovered("the columns of this strategy are not known here.")

    def rows_of(self, cells: int) -> int:
        """How many rows are measured of a block that has only the first cells; rows of zeros are left out."""
        return self.rows if cells == self.cells else cells

    def listed(self) -> Iterable[Iterable[fmpq]]:
        """The entries of each column; of columns alike, one will do."""
        seen = 0
        for cell in range(self.cells):
            entries = self.column(cell).values()
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                raise NotCovered(f"a strategy of {self.cells} cells has too many entries to be checked.")
            yield entries

    def kinds(self, sure: bool = False) -> set[Sizes] | None:
        """The sizes in all columns; if ``sure``, only such that are in one, and perhaps not all. None: too many."""
        found: set[Sizes] = set()
        for each in self.listed():
            found.add(_sorted(each))
            if len(found) * len(next(iter(found))) > _MOST_SIZES:
                return None
        return found

    def some(self) -> list[Column]:
        """A few columns that lie apart; none if they are too long."""
        places = sorted({round(share / (_PLACES - 1) * (self.cells - 1)) for share in range(_PLACES)})
        try:
            return [self.column(place) for place in places]
        except NotCovered:
            return []

    def pairs(self) -> list[Sizes]:
        """A few differences of columns."""
        return [_difference(*two) for two in itertools.combinations(self.some(), 2)]

    def majorant(self) -> Sizes:
        """Sizes whose n largest add up to at least as much as those of any column, for every n."""
        most = [_ZERO]  # of sums
        for each in self.listed():
            sums = list(itertools.accumulate(_sorted(each))) or [_ZERO]
            longest = max(len(most), len(sums))
            most = [max(one[min(n, len(one) - 1)] for one in (most, sums)) for n in range(longest)]
        return _sorted(after - before for before, after in itertools.pairwise([_ZERO, *most]))

    def power(self, order: int) -> Ends:
        """Ends of the largest l1 norm of a column, or of the square of its l2 norm."""
        found = _fraction(max(_power(each, order) for each in self.listed()))
        return found, found

    def moves(self, sizes: Sizes, factor: Fraction) -> Moves:
        """The change of the answers by a multiple of a column."""
        _check_few(5 * len(sizes))
        return Moves.of((_fraction(size) * factor, 1) for size in sizes)

    def apart(self, order: int) -> Ends:
        """Ends of the largest l1 distance of two columns, or of the square of their l2 distance."""
        least = max((_power(each, order) for each in self.pairs()), default=_ZERO)
        return _fraction(least), self.furthest(order)

    def furthest(self, order: int) -> Fraction:
        """At least the distance: |a - b|_1 <= |a|_1 + |b|_1, |a - b|^2 <= |a|^2 + |b|^2 if nothing is negative."""
        return self.power(order)[1] * (2 if order == 1 or self.nonnegative else 4)


def _power(entries: Iterable[fmpq], order: int) -> fmpq:
    return sum((abs(entry) if order == 1 else entry * entry for entry in entries), _ZERO)


def _sorted(entries: Iterable[fmpq]) -> Sizes:
    return tuple(sorted((abs(entry) for entry in entries if entry), reverse=True))


def _difference(one: Column, other: Column) -> Sizes:
    return _sorted(one.get(row, _ZERO) - other.get(row, _ZERO) for row in one.keys() | other.keys())


def _check_few(entries: int) -> None:
    if entries > _MOST_SIZES:
        raise NotCovered(f"columns of {entries} entries are not covered.")


def _exact(value: float) -> fmpq:
    return fmpq(*value.as_integer_ratio())


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


class Alike(Strategy):
    """All columns have the same sizes, and no two are further apart than ``pair``: cells, totals, tables, trees."""

    def __init__(self, shape: tuple[int, ...], rows: int, each: list[float], pair: list[float]) -> None:
        super().__init__(shape, rows)
        self.each, self.pair = (_sorted(map(_exact, sizes)) for sizes in (each, pair))

    def column(self, cell: int) -> Column:
        """Of cells or a total along an axis, which may be part of a product."""
        return {cell % self.rows: fmpq(1)} if self.each == (fmpq(1),) and len(self.shape) == 1 else super().column(cell)

    def listed(self) -> Iterable[Iterable[fmpq]]:
        """One for all."""
        return [self.each]

    def pairs(self) -> list[Sizes]:
        """No two are further apart."""
        return [self.pair]

    def furthest(self, order: int) -> Fraction:
        """Exactly."""
        return _fraction(_power(self.pair, order))


class Dense(Strategy):
    """Every row of a matrix is measured."""

    def __init__(self, shape: tuple[int, ...], rows: int, values: list[float]) -> None:
        super().__init__(shape, rows, min(values) >= 0.0)
        if self.cells * rows != len(values):
            raise Unreadable("the matrix of a strategy does not have one column for each cell of its table.")
        self.values = values

    def column(self, cell: int) -> Column:
        """One column."""
        return {row: _exact(x) for row, x in enumerate(self.values[cell :: self.cells]) if x}

    def apart(self, order: int) -> Ends:
        """In l2 by the products of all columns, |a|^2 + |b|^2 - 2 <a, b>; in l1 pair by pair, if they are few."""
        if order == 2 and len(self.values) <= _MOST_STEPS:
            with working(128):
                matrix, furthest = arb_mat(self.rows, self.cells, self.values), arb(0)
                products = (matrix.transpose() * matrix).tolist()
                for one, row in enumerate(products):
                    for other in range(one):
                        furthest = furthest.max(row[one] + products[other][other] - 2 * row[other])
                return ends(furthest)
        if order == 1 and self.cells * sum(map(bool, self.values)) <= _MOST_STEPS:
            pairs = itertools.combinations(map(self.column, range(self.cells)), 2)
            most = _fraction(max((_power(_difference(*two), 1) for two in pairs), default=_ZERO))
            return most, most
        return super().apart(order)


class PIdentity(Strategy):
    """Every cell times a weight, stored as runs, then the rows of a matrix of sums; nothing is negative."""

    def __init__(self, weights: list[float], counts: list[int], sums: list[float]) -> None:
        self.ends, self.weights, self.sums = (
            list(itertools.accumulate(counts)),
            *([*map(_exact, x)] for x in (weights, sums)),
        )
        cells = self.ends[-1]
        super().__init__((cells,), cells + len(sums) // cells)
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
        return {row: entry for row, entry in found.items() if entry}

    def listed(self) -> Iterable[Iterable[fmpq]]:
        """Without sums, one of each run."""
        return super().listed() if self.sums else ([weight] for weight in set(self.weights))


class Hats(Strategy):
    """[I; T H], every column times the largest double that makes its sum at most ``length``; nothing is negative.

    Between nodes, ``step`` cells apart, a hat rises by (place + 1/2)/step, rounded to multiples of 2^-30, and the one
    before falls by as much. The first row of ``heights`` weighs each hat, the others are sums of hats.
    """

    def __init__(self, size: int, step: int, length: Fraction, nodes: int, heights: list[float]) -> None:
        super().__init__((size,), size + nodes + len(heights) // nodes - 1)
        if nodes != -(-size // step) + 1 or min(heights) < 0.0:
            raise Unreadable("the hats of a strategy do not have one height for each node, or a height is negative.")
        self.step, self.nodes = step, nodes
        self.heights = [[*map(_exact, heights[at : at + nodes])] for at in range(0, len(heights), nodes)]
        totals = [sum(column, _ZERO) for column in zip(*self.heights, strict=True)]
        self._scales: list[fmpq] = []
        for cell in range(size):
            node, before, after = self._halves(cell)
            most = length / _fraction(1 + before * totals[node] + after * totals[node + 1])
            if not most < 2**1000:
                raise NotCovered("hats of so large a length are not covered.")
            near = float(most)
            self._scales.append(_exact(near if Fraction(near) <= most else math.nextafter(near, 0.0)))

    def _halves(self, cell: int) -> tuple[int, fmpq, fmpq]:
        """The node before a cell, how high its hat is and how high the next one; correctly rounded doubles."""
        rise = fmpq(round((cell % self.step + 0.5) / self.step * 2.0**30), 2**30)
        return cell // self.step, 1 - rise, rise

    def rows_of(self, cells: int) -> int:
        """The cells, the hats over them, and the sums of such hats."""
        nodes = -(-cells // self.step) + 1
        return self.rows if cells == self.cells else cells + nodes + sum(any(row[:nodes]) for row in self.heights[1:])

    def column(self, cell: int) -> Column:
        """One column."""
        (node, before, after), (own, *sums) = self._halves(cell), self.heights
        found = {cell: fmpq(1), self.cells + node: before * own[node], self.cells + node + 1: after * own[node + 1]}
        under = (before * heights[node] + after * heights[node + 1] for heights in sums)
        found |= enumerate(under, self.cells + self.nodes)
        return {row: entry * self._scales[cell] for row, entry in found.items() if entry}


class Nested(Strategy):
    """``coarse`` measures the sums of blocks, ``fine`` the cells of every block; the last block may have fewer cells.

    A column is one of the coarse and one of the fine strategy, one below the other. All pairs of them are above all
    columns; those with the first coarse one are there, as the first block has all its cells.
    """

    def __init__(self, coarse: Strategy, fine: Strategy, size: int) -> None:
        super().__init__((size,), 0)
        self.coarse, self.fine, self.span = coarse, fine, coarse.span + coarse.cells * fine.span
        if not max((coarse.cells - 1) * fine.cells + 1, fine.cells) <= size <= coarse.cells * fine.cells:
            raise Unreadable(f"{size} cells are not {coarse.cells} blocks of {fine.cells}.")
        self.rows = self.rows_of(size)

    def rows_of(self, cells: int) -> int:
        """Those of the sums, and of every block."""
        full, left = divmod(cells, self.fine.cells)
        last = self.fine.rows_of(left) if left else 0
        return self.coarse.rows_of(full + (left > 0)) + full * self.fine.rows + last

    def column(self, cell: int) -> Column:
        """One column."""
        block, place = divmod(cell, self.fine.cells)
        first = self.coarse.span + block * self.fine.span
        return self.coarse.column(block) | {first + row: entry for row, entry in self.fine.column(place).items()}

    def power(self, order: int) -> Ends:
        """Both parts add up."""
        least = _fraction(_power(self.coarse.column(0).values(), order))
        (_, above), (low, high) = self.coarse.power(order), self.fine.power(order)
        return least + low, above + high

    def kinds(self, sure: bool = False) -> set[Sizes] | None:
        """Every coarse column with every fine one below it."""
        above = {_sorted(self.coarse.column(0).values())} if sure else self.coarse.kinds()
        below = self.fine.kinds(sure)
        if above is None or below is None or len(above) * len(below) > _MOST_SIZES // 10:
            return None
        return {_sorted(one + two) for one, two in itertools.product(above, below)}

    def majorant(self) -> Sizes:
        """What majorizes two parts majorizes them joined."""
        return _sorted(self.coarse.majorant() + self.fine.majorant())


class Product(Strategy):
    """A = A_1 x A_2 x ...: a column is the product of columns, and norms multiply."""

    def __init__(self, axes: list[Strategy]) -> None:
        shape, rows = tuple(axis.cells for axis in axes), math.prod(axis.rows for axis in axes)
        super().__init__(shape, rows, all(axis.nonnegative for axis in axes))
        self.axes = axes

    def column(self, cell: int) -> Column:
        """One column."""
        found, after = {0: fmpq(1)}, self.cells
        for axis in self.axes:
            after //= axis.cells
            own = axis.column(cell // after % axis.cells)
            _check_few(len(found) * len(own))
            found = {row * axis.span + other: a * b for row, a in found.items() for other, b in own.items()}
        return found

    def power(self, order: int) -> Ends:
        """Norms multiply."""
        low, high = zip(*(axis.power(order) for axis in self.axes), strict=True)
        return math.prod(low, start=Fraction(1)), math.prod(high, start=Fraction(1))

    def kinds(self, sure: bool = False) -> set[Sizes] | None:
        """All products of columns of the axes."""
        found: set[Sizes] = {(fmpq(1),)}
        for axis in self.axes:
            own = axis.kinds(sure)
            if own is None or len(found) * len(own) * max(map(len, own)) * max(map(len, found)) > _MOST_SIZES:
                return None
            found = {_sorted(a * b for a in one for b in two) for one in found for two in own}
        return found

    def majorant(self) -> Sizes:
        """What majorizes the columns of every axis majorizes their products."""
        found: Sizes = (fmpq(1),)
        for axis in self.axes:
            own = axis.majorant()
            _check_few(len(own) * len(found))
            found = _sorted(a * b for a in found for b in own)
        return found


class Toeplitz(Strategy):
    """A_ij = r_i c_(i-j) t_j for i >= j; without scales r and t, these are 1."""

    def __init__(self, size: int, coefficients: list[float], rows: list[float], columns: list[float]) -> None:
        self.parts = (coefficients, rows, columns)
        super().__init__((size,), size, min(coefficients) >= 0.0)
        if any(part and (len(part) != size or min(part) <= 0.0) for part in (rows, columns)):
            raise Unreadable("a Toeplitz matrix does not have one scale above 0 for each cell.")
        if len(coefficients) > size or not coefficients[0]:
            raise Unreadable("a Toeplitz matrix has more coefficients than cells, or its first coefficient is 0.")

    def column(self, cell: int) -> Column:
        """One column."""
        c, rows, columns = self.parts
        t = _exact(columns[cell]) if columns else fmpq(1)
        scales = map(_exact, rows[cell:]) if rows else itertools.repeat(fmpq(1))
        both = zip(c[: self.cells - cell], scales, strict=False)
        return {cell + i: _exact(x) * r * t for i, (x, r) in enumerate(both) if x}

    def listed(self) -> Iterable[Iterable[fmpq]]:
        """Without scales, the others are beginnings of the first."""
        return super().listed() if any(self.parts[1:]) else [self.column(0).values()]

    def power(self, order: int) -> Ends:
        """With scales by a product of polynomials: coefficient n - 1 - j is sum_k |c_k|^p r_(j+k)^p."""
        if not any(self.parts[1:]):
            return super().power(order)
        if self.cells > _LONGEST:
            raise NotCovered(f"a Toeplitz matrix of {self.cells} cells is too long.")
        with working(192):
            c, r, t = ([abs(arb(x)) ** order for x in part or [1.0] * self.cells] for part in self.parts)
            sums, found = arb_poly(c) * arb_poly(r[::-1]), arb(0)
            for cell, scale in enumerate(t):
                found = found.max(sums[self.cells - 1 - cell] * scale)
            return ends(found)


class Residuals(Strategy):
    """For each set S of attributes x_(i in S) U_i x_(i not in S) 1^T, times a weight; U_i Helmert's orthonormal rows.

    Row k of U is (1, ..., 1, -k, 0, ..., 0)/sqrt(k (k + 1)). The scale of each row is a double, computed with at most
    3 |S| + 1 roundings, so that an entry is off by a share of at most ``off`` = (3 |S| + 2) 2^-53. Only norms are
    known here, not the columns.
    """

    def __init__(self, sizes: tuple[int, ...], sets: list[tuple[int, ...]], weights: list[float]) -> None:
        if any(sizes[i] < 2 for each in sets for i in each):
            raise Unreadable("a residual is about an attribute of one value.")
        super().__init__(sizes, sum(math.prod(sizes[i] - 1 for i in each) for each in sets), nonnegative=False)
        # With 10^15 cells at most, no product of doubles is outside their normal range.
        if min(weights) < 1e-280 or max(weights) > 1e280 or sum(sizes) > _LONGEST:
            raise NotCovered("residual tables of so extreme weights or sizes are not covered.")
        self.sets, self.weights, self.off = sets, weights, Fraction(3 * max(map(len, sets)) + 2, 2**53)

    def _summed(self, of_set: Callable[[tuple[int, ...]], Fraction]) -> Fraction:
        """The sum over the sets of weight^2 times a number."""
        parts = zip(self.sets, self.weights, strict=True)
        return sum((Fraction(weight) ** 2 * of_set(each) for each, weight in parts), Fraction(0))

    def _product(self, each: tuple[int, ...], differing: Iterable[int] = ()) -> Fraction:
        """Of two columns for one set, for cells that differ in these attributes: U^T U = I - 1 1^T/n."""
        return math.prod(((i not in differing) - Fraction(1, self.shape[i]) for i in each), start=Fraction(1))

    def power(self, order: int) -> Ends:
        """All columns have the same l2 norm but for rounding, and the first has the largest l1 norm.

        Column c of U has the l1 norm sqrt(c/(c + 1)) + sum_(k > c) 1/sqrt(k (k + 1)). It falls with c from c = 1 on, as
        c + 1 - sqrt(c (c + 2)) < 1, and is the same for columns 0 and 1.
        """
        if order == 2:
            low = high = self._summed(self._product)
        else:
            with working(128):
                norms = [sum((arb(k * (k + 1)).rsqrt() for k in range(1, size)), arb(0)) for size in self.shape]
                products = (math.prod((norms[i] for i in each), start=arb(1)) for each in self.sets)
                low, high = ends(sum(map(operator.mul, products, self.weights), arb(0)))
        return low * (1 - self.off) ** order, high * (1 + self.off) ** order

    def apart(self, order: int) -> Ends:
        """The square of the distance D is 2 (N^2 - product), set by set, N the norm of a column.

        It is largest for cells that differ in one attribute of the set alone, as 1/n <= 1 - 1/n; such cells need not be
        the same for all sets. Roundings change D <= 2 N by at most d = 2 off N, and D^2 by 2 D d + d^2 < 9 off N^2.
        """
        if order == 1:
            return super().apart(1)

        def square(each: tuple[int, ...], differing: Iterable[int]) -> Fraction:
            return 2 * (self._product(each) - self._product(each, differing))

        attributes, rounding = range(len(self.shape)), 9 * self.off * self.power(2)[1]
        subsets = itertools.chain(*(itertools.combinations(attributes, n + 1) for n in attributes))
        tried = itertools.islice(subsets, 1 + 5000 // len(self.sets))
        low = max(self._summed(functools.partial(square, differing=some)) for some in tried)
        high = self._summed(lambda each: max((square(each, (i,)) for i in each), default=Fraction(0)))
        return max(low - rounding, Fraction(0)), high + rounding


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
    raise Unreadable(f"{given.name} is not a strategy of a known form.")


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
    return Alike(shape, cells, [1.0], [1.0, 1.0] if cells > 1 else [])


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
    # Two cells that differ in all attributes of several values differ in every table that has one.
    pair = [weight for each, weight in zip(sets, weights, strict=True) if max((sizes[i] for i in each), default=1) > 1]
    return Alike(sizes, sum(math.prod(sizes[i] for i in each) for each in sets), weights, pair * 2)


_LINES: dict[str, Callable[[Fields], Strategy]] = {
    "matrix": _read_matrix,
    "cells": _read_cells,
    "total": lambda given: Alike((given.whole("cells"),), 1, [1.0], []),
    "p-identity": _read_p_identity,
    "hats": _read_hats,
    "nested": _read_nested,
    "toeplitz": _read_toeplitz,
}

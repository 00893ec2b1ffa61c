r"""Matrix noise Z = W diag(a) N diag(b) V^T, rounded exactly: products in floats, doubtful entries in integers.

N has independent standard normal entries; W and V are any public matrices, or None for the identity. BLAS gives Z
within a bound R_i C_j that is proved from norms of rows and columns (docs/theory/noise-engine.md, lemma 7): all but few
entries are surely in their grid cell. For the others the real number sum_kl W_ik a_k N_kl b_l V_jl is enclosed in an
interval of integers, from words lengthened until it tells. The output does not depend on the order of BLAS's sums.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference, ziggurat
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.forms import OfNormals
from lessnoise.noise.grid import BLOCK
from lessnoise.noise.norm import lengthened_block, signed_integers
from lessnoise.noise.ziggurat import LAYERS, POSITION_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.job import Job, Worker
    from lessnoise.noise.reference import Block
    from lessnoise.noise.stream import Reader

    Interval = tuple[Fraction, Fraction]
    Coefficients = tuple[list[Fraction], list[Fraction]]
    Entry = tuple[int, int, float]  # row, column, value: the output may have taken the value's place

_CHUNK = 256  # rows or columns at a time: the noise is the only array of its size
_U = 2.0**-53
_ABOVE = 1.0 + 2.0**-20  # for the rounding of the bounds themselves
_FINEST = 2.0**-20  # of the root mean square: the grid is not made finer for a direction with less noise than that
_FRACTION_BITS = POSITION_BITS + 24  # x is a multiple of 2^-77, and of 2^-64 of that for each further level


@dataclass(frozen=True, eq=False)
class Matrix(OfNormals):
    """Z = W diag(rows) N diag(columns) V^T."""

    rows: Array
    columns: Array
    row_basis: Array | None = None
    column_basis: Array | None = None

    kernels: ClassVar[str] = "matrix"

    def deviation(self, count: int) -> float:
        """The least, for bases that are orthonormal, so that a direction with little noise keeps its accuracy."""
        with np.errstate(over="ignore"):
            mean = math.sqrt(float(np.mean(self.rows**2)) * float(np.mean(self.columns**2)))
        return max(float(self.rows.min() * self.columns.min()), mean * _FINEST)

    def add(self, job: Job) -> None:
        """Draw, multiply, add and round; then settle what the bound leaves open."""
        shape = self.rows.size, self.columns.size
        own = job.in_place or job.grid.single
        work = np.empty(job.count) if own else job.out
        _fill_normals(job, work)
        bounds = self._product(work.reshape(shape), job.density.error)
        doubtful = _rounded(job, work.reshape(shape), *bounds)
        for level in exact.word_levels():
            if not doubtful:
                return
            doubtful = self._settle(job, doubtful, level)

    def _product(self, noise: Array, error: float) -> tuple[Array, Array]:
        """Z in place of N; returns R and C with |Z_ij - its real value| <= R_i C_j."""
        largest = float(max(noise.max(), -noise.min()))
        noise *= self.rows[:, np.newaxis]
        noise *= self.columns
        # |fl(a N b) - a N* b| <= a_i b_j (error + 3 u |N_ij|).
        if self.row_basis is None:
            left, right = self.rows.copy(), self.columns * (error + 3.0 * _U * largest)
        else:
            lengths = np.empty(self.columns.size)
            for start in range(0, self.columns.size, _CHUNK):
                part = noise[:, start : start + _CHUNK]
                lengths[start : start + _CHUNK] = np.sqrt(np.einsum("ij,ij->j", part, part))
                part[...] = self.row_basis @ part
            # Sums of m products in any order are within gamma_m of |W| |a N b|, at most |W_i| |(a N b)_j|.
            left = _row_lengths(self.row_basis)
            own = error * math.sqrt(float(np.sum(self.rows**2))) * self.columns
            right = own + (gamma(self.rows.size) + 3.0 * _U) * lengths
        if self.column_basis is None:
            return left * _ABOVE, right * _ABOVE
        spread = math.sqrt(float(np.sum(right**2)))
        lengths = np.empty(self.rows.size)
        for start in range(0, self.rows.size, _CHUNK):
            part = noise[start : start + _CHUNK]
            lengths[start : start + _CHUNK] = np.sqrt(np.einsum("ij,ij->i", part, part))
            part[...] = part @ self.column_basis.T
        left = gamma(self.columns.size) * lengths + left * spread
        return left * _ABOVE, _row_lengths(self.column_basis) * _ABOVE

    # The exact side.

    def _settle(self, job: Job, doubtful: list[Entry], level: int) -> list[Entry]:
        """Entries from intervals; those that need a further level are returned."""
        pairs = [self._coefficients(i, j) for i, j, _ in doubtful]
        fast = level == 1 and job.kernels is not None and compiled_kernels("doubts") is not None
        intervals = _pair_sums(job, pairs) if fast else _integer_sums(job, pairs, level)
        return _settled(job, doubtful, intervals, self.columns.size)

    def _coefficients(self, i: int, j: int) -> Coefficients:
        left = [Fraction(0)] * self.rows.size
        right = [Fraction(0)] * self.columns.size
        for side, at, scales, basis in (
            (left, i, self.rows, self.row_basis),
            (right, j, self.columns, self.column_basis),
        ):
            if basis is None:
                side[at] = Fraction(float(scales[at]))
            else:
                side[:] = [Fraction(w) * Fraction(s) for w, s in zip(basis[at].tolist(), scales.tolist(), strict=True)]
        return left, right


def _settled(job: Job, doubtful: list[Entry], intervals: list[Interval], columns: int) -> list[Entry]:
    """Round what the intervals tell; the other entries are returned."""
    step, end, left = Fraction(job.grid.step), int(job.grid.largest_output), []
    for (i, j, value), (low, high) in zip(doubtful, intervals, strict=True):
        found = exact.nearest_integer((Fraction(value) + low) / step, (Fraction(value) + high) / step)
        if found is None:
            left.append((i, j, value))
        else:
            job.out[i * columns + j] = max(-end, min(end, found)) * job.grid.step + 0.0
    return left


def _pair_sums(job: Job, pairs: list[Coefficients]) -> list[Interval]:
    """sum_kl left_k x_kl right_l at level 1, in pairs of doubles: within 2^-70 of the sum of its terms' sizes."""
    left, right = (np.array([_halves(pair[side]) for pair in pairs]) for side in (0, 1))
    sums: list[NDArray[np.float64]] = []
    tails = [[Fraction(0), Fraction(0)] for _ in pairs]
    lock = threading.Lock()

    def work(worker: Worker, block: int) -> None:
        found = lengthened_block(job, worker, block)
        start, columns = job.part(block).start, right.shape[2]
        part = np.zeros((len(pairs), 2))
        if found is not None:
            first, further, drawn = found
            args = (first, further, drawn.x.size, drawn.positions, drawn.seconds, job.density.widths)
            job.kernels.fine_dots(*args, start, left, right, part)
            others = np.flatnonzero(drawn.seconds >= 0)
        else:
            drawn = reference.sample(job.density, worker.reader, block, job.size(block), job.margin)
            others = np.arange(job.size(block))
        far = [(*divmod(start + int(j), columns), _dyadic(drawn, job, worker, block, int(j))) for j in others]
        with lock:
            sums.append(part)
            for tail, (own, other) in zip(tails, pairs, strict=True):
                for k, col, ends in far:
                    products = sorted(own[k] * other[col] * end for end in ends)
                    tail[0] += products[0]
                    tail[1] += products[1]

    job.each(work)
    result = []
    for d, (own, other) in enumerate(pairs):
        total = sum((Fraction(float(s[d, 0])) + Fraction(float(s[d, 1])) for s in sums), Fraction(0))
        slack = sum(map(abs, own), Fraction(0)) * sum(map(abs, other), Fraction(0)) * 16 / 2**70
        total /= 1 << POSITION_BITS
        result.append((total - slack + tails[d][0], total + slack + tails[d][1]))
    return result


def _dyadic(drawn: Block, job: Job, worker: Worker, block: int, index: int) -> Interval:
    """A value at level 1, rounded outwards to multiples of 2^-192, so that sums of many stay short."""
    low, high = drawn.draw(job.density, worker.reader, block, index).interval(1)
    scale = 1 << 192
    return Fraction((low * scale).__floor__(), scale), Fraction((high * scale).__ceil__(), scale)


def _halves(values: list[Fraction]) -> list[list[float]]:
    """High and low parts; their sum is the value within a relative 2^-106."""
    high = [float(v) for v in values]
    return [high, [float(v - Fraction(h)) for v, h in zip(values, high, strict=True)]]


def _integer_sums(job: Job, pairs: list[Coefficients], level: int) -> list[Interval]:
    """The same in Python's integers, at any level."""
    sums = [_IntegerSum(*pair) for pair in pairs]
    reader = job.stream.reader()
    for block in range(job.blocks):
        rows, columns = np.divmod(np.arange(job.part(block).start, job.part(block).stop), sums[0].right_used.size)
        wanted = [np.flatnonzero(s.left_used[rows] & s.right_used[columns]) for s in sums]
        needed = np.unique(np.concatenate(wanted))
        if not needed.size:
            continue
        values = dict(zip(needed.tolist(), _integers(job, reader, block, needed, level), strict=True))
        for s, chosen in zip(sums, wanted, strict=True):
            s.add(rows[chosen].tolist(), columns[chosen].tolist(), (values[i] for i in chosen.tolist()))
    return [s.interval(level) for s in sums]


class _IntegerSum:
    """sum_kl left_k x_kl right_l, in integers."""

    def __init__(self, left: list[Fraction], right: list[Fraction]) -> None:
        self.left, self._left_unit = _scaled(left)
        self.right, self._right_unit = _scaled(right)
        self.left_used, self.right_used = (np.array([c != 0 for c in side]) for side in (left, right))
        self._low = self._high = 0

    def add(self, rows: list[int], columns: list[int], values: Iterator[tuple[int, int]]) -> None:
        """Terms whose x lies in [low, high], in units of the level."""
        for k, col, (low, high) in zip(rows, columns, values, strict=True):
            factor = self.left[k] * self.right[col]
            self._low += factor * (low if factor >= 0 else high)
            self._high += factor * (high if factor >= 0 else low)

    def interval(self, level: int) -> tuple[Fraction, Fraction]:
        """Of the sum."""
        unit = self._left_unit * self._right_unit / (1 << _FRACTION_BITS + 64 * level)
        return self._low * unit, self._high * unit


def _scaled(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Dyadic numbers as integers in one unit."""
    denominator = max(v.denominator for v in values)  # all are powers of two
    return [int(v * denominator) for v in values], Fraction(1, denominator)


def _integers(job: Job, reader: Reader, block: int, wanted: NDArray[np.int64], level: int) -> list[tuple[int, int]]:
    """Chosen values of a block as intervals of integers, in units of 2^-(77 + 64 level)."""
    found = reference.sample(job.density, reader, block, job.size(block), job.margin)
    first, values = signed_integers(reader, block, found.positions[wanted], level)
    widths = (job.density.widths * 2.0**24).astype(np.int64)[first & np.uint64(LAYERS - 1)].tolist()
    result = [(s * w, (s + 1) * w) for s, w in zip(values, widths, strict=True)]
    for place in np.flatnonzero(found.seconds[wanted] >= 0):
        low, high = found.draw(job.density, reader, block, int(wanted[place])).interval(level)
        scale = 1 << _FRACTION_BITS + 64 * level
        result[place] = (low * scale).__floor__(), -((-high * scale).__floor__())
    return result


def _fill_normals(job: Job, work: Array) -> None:
    """Standard normals, row after row."""
    tables = job.density.tables

    def fill(worker: Worker, block: int) -> None:
        status = 1
        if job.kernels is not None:
            status, _, _ = job.kernels.standard(*job.words(worker, block), worker.scratch, tables, work, block * BLOCK)
        if status != 0:
            found = reference.sample(job.density, worker.reader, block, job.size(block), job.margin)
            work[job.part(block)] = found.x

    job.each(fill)


def _rounded(job: Job, noise: Array, left: Array, right: Array) -> list[Entry]:
    """Add and round to the output; returns the entries that floats leave open."""
    step, end = job.grid.step, job.grid.largest_output
    values, out = job.values.reshape(noise.shape), job.out.reshape(noise.shape)
    doubtful: list[Entry] = []
    rows = max(1, BLOCK // noise.shape[1])
    bounds = right * (1.0 / step)
    for start in range(0, noise.shape[0], rows):
        part = slice(start, start + rows)
        cells = values[part].astype(np.float64) * (1.0 / step)
        whole = np.rint(cells)
        move = noise[part] * (1.0 / step)
        t = (cells - whole) + move
        steps = np.rint(t)
        # t is off by the bound, one rounding, and whatever falls below the smallest double.
        near = left[part, np.newaxis] * bounds + 2.0**-50 * (np.abs(move) + 1.0)
        sure = np.abs(t - steps) + near < 0.5
        sure &= np.abs(move) < 2.0**45
        if job.margin > ziggurat.MARGIN:
            sure[...] = False
        doubtful += [(start + int(i), int(j), float(values[start + i, j])) for i, j in np.argwhere(~sure)]
        out[part] = np.clip(whole + steps, -end, end) * step + 0.0
    return doubtful


def _row_lengths(matrix: Array) -> Array:
    """Euclidean."""
    result: Array = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return result


def gamma(terms: int) -> float:
    """Higham's gamma_n, with two roundings to spare."""
    return (terms + 2) * _U * (1.0 + 2.0**-10)


# Wishart noise.


@dataclass(frozen=True)
class WishartForm(OfNormals):
    """W = scale N N^T, N of d x (d + 1) independent standard normal entries."""

    scale: float

    kernels: ClassVar[str] = "matrix"

    def deviation(self, count: int) -> float:
        """Of an entry off the diagonal."""
        return self.scale * math.sqrt(math.isqrt(count) + 1)

    def add(self, job: Job) -> None:
        """Draw, multiply, add and round; then settle what the bound leaves open."""
        size = math.isqrt(job.count)
        drawn = np.empty((size, size + 1))
        normals = dataclasses.replace(job, values=drawn.reshape(-1), out=drawn.reshape(-1))
        _fill_normals(normals, normals.out)
        noise = drawn @ drawn.T
        noise *= self.scale
        # Sums in any order are within gamma |N_i| |N_j|, and the entries' own error e adds e sqrt(m) (|N_i| + |N_j|)
        # and e^2 m: less than the product of sqrt(gamma) |N_i| + e sqrt(m/gamma) and the same for j.
        relative = gamma(size + 1) + 4.0 * _U
        own = job.density.error * math.sqrt((size + 1) / relative)
        bound = math.sqrt(self.scale) * (math.sqrt(relative) * _row_lengths(drawn) + own) * _ABOVE
        doubtful = _rounded(job, noise, bound, bound)
        for level in exact.word_levels():
            if not doubtful:
                return
            reader = job.stream.reader()
            intervals = [self._entry(normals, reader, i, j, level) for i, j, _ in doubtful]
            doubtful = _settled(job, doubtful, intervals, size)

    def _entry(self, normals: Job, reader: Reader, i: int, j: int, level: int) -> Interval:
        """The sum of products of two rows, from words lengthened by ``level`` levels."""
        low = high = 0
        for pair in zip(*(_row(normals, reader, row, level) for row in (i, j)), strict=True):
            products = [a * b for a, b in itertools.product(*pair)]
            low, high = low + min(products), high + max(products)
        unit = Fraction(self.scale) / (1 << 2 * (_FRACTION_BITS + 64 * level))
        return low * unit, high * unit


def _row(normals: Job, reader: Reader, row: int, level: int) -> list[tuple[int, int]]:
    """One row as intervals of integers."""
    columns = math.isqrt(normals.count) + 1  # of d (d + 1) entries
    start, stop = row * columns, (row + 1) * columns
    found: list[tuple[int, int]] = []
    for block in range(start // BLOCK, (stop - 1) // BLOCK + 1):
        first = normals.part(block).start
        wanted = np.arange(max(start - first, 0), min(stop - first, normals.size(block)))
        found += _integers(normals, reader, block, wanted, level)
    return found

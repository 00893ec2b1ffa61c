r"""One unit vector of a Bingham law, drawn exactly and rounded to a grid: what components are made of.

The law has density proportional to exp(w u^T B^T S B u) on the unit sphere of R^m: S is private, the weight w and the
basis B (d x m) are public, and all of them are meant as the numbers they are. It is drawn by rejection from an angular
central Gaussian law (Kent, Ganeiban & Mardia, 2018, J. Comput. Graph. Stat. 27, 291): propose v = L z with z normal and
u = v/|v|, whose density is proportional to (|v|^2/|z|^2)^(m/2), and accept with probability

    exp(-t) (|z|^2/|v|^2)^(m/2) / M,    t = top - w v^T B^T S B v/|v|^2.

*Any* matrix L, number top and bound M of the numerator give the law itself. Floats choose them: with eigenvalues and
-vectors of w B^T S B, f_i = top - (eigenvalue i) >= 0 and b the root of sum 1/(b + 2 f_i) = 1, L has the columns
(eigenvector i)/sqrt(1 + 2 f_i/b). Then |z|^2 (1 - eta) <= |v|^2 (1 + 2 t/b), eta being what floats got wrong, and

    ln M = -(m - b)/2 + (m/2) ln(m/b) - (m/2) ln(1 - eta).

Whether a proposal is accepted, and to which multiple of 2^-30 each entry of u is rounded, is decided in floats where
their error, bounded here, leaves no doubt; elsewhere in exact arithmetic, with as many digits of z as it takes.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference
from lessnoise.noise.stream import PROPOSALS
from lessnoise.noise.ziggurat import normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.noise.exact_arithmetic import Draw, Interval, Word
    from lessnoise.noise.reference import Block
    from lessnoise.noise.stream import Reader, Stream


GRID = 2.0**-30
_AT_A_TIME = 8
_U = 2.0**-53


class Normals:
    """Standard normals of a release, in batches with a uniform word for each: floats that can be made longer."""

    def __init__(self, stream: Stream) -> None:
        self._reader: Reader = stream.claim().reader()
        self._block = PROPOSALS

    def batch(self, count: int) -> tuple[Block, int]:
        """The next normals and their block; the uniform words that go with them are in the block after it."""
        self._block += 2
        return reference.sample(normal(), self._reader, self._block - 2, count), self._block - 2

    def words(self, block: int, count: int) -> Array:
        """The first digits of the uniform words, as floats."""
        return self._reader.words(0, block + 1, 0, count)[:count].astype(np.float64)

    def draws(self, found: Block, block: int, start: int, count: int) -> list[Draw]:
        """Some of them, to any precision."""
        return [found.draw(normal(), self._reader, block, index) for index in range(start, start + count)]

    def word(self, block: int, index: int) -> Word:
        """A uniform word."""
        return exact.Word(self._reader, block + 1, index)


class Bingham:
    """The law of one unit vector, with its envelope; ``margin`` sends everything to the exact side, for tests."""

    def __init__(self, matrix: Array, weight: float, basis: Array | None = None, margin: float = 0.0) -> None:
        self.matrix, self.weight, self.basis, self.margin = matrix, weight, basis, margin
        outer = np.eye(len(matrix)) if basis is None else basis
        inner = weight * (outer.T @ matrix @ outer)
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        self.size = size = len(values)
        self.top = float(values[-1])
        self.falls = self.top - values
        self.b = _envelope(self.falls)
        self.deviations = 1.0 / np.sqrt(1.0 + 2.0 * self.falls / self.b)
        self.factor = vectors * self.deviations
        # With V the eigenvectors as they are, entry by entry: |V^T w B^T S B V - diag(values)| <= r, |V^T V - I| <= o.
        units, absolute = (4 * len(matrix) + 32) * _U, np.abs(vectors)
        terms = np.abs(inner) + weight * (np.abs(outer).T @ np.abs(matrix) @ np.abs(outer))
        r = vectors.T @ inner @ vectors
        o = vectors.T @ vectors
        r[np.diag_indices(size)] -= values
        o[np.diag_indices(size)] -= 1.0
        r = np.abs(r) + units * (absolute.T @ terms @ absolute)
        o = np.abs(o) + (size + 16) * _U * (absolute.T @ absolute)
        largest, self._skew = float(np.abs(values).max()), 1.01 * _length(o) + units
        self._spread = 1.01 * (_length(r) + largest * (_length(o) + 4.0 * _U)) + units * float(self.falls[0])
        # |z|^2 and |v|^2 (1 + 2 t/b) are forms of the unit matrix and of one that differs from it by this much.
        off = self.deviations[:, np.newaxis] * (o + 2.0 / self.b * (largest * o + r)) * self.deviations
        eta = float(np.abs(self.deviations**2 * (1.0 + 2.0 * self.falls / self.b) - 1.0).max())
        eta = 1.01 * (eta + _length(off)) + 32.0 * _U
        if not eta < 0.01:
            raise InvalidInput(
                f"matrix has entries of up to {float(np.abs(matrix).max()):g} and weight={weight:g}, too large to "
                "sample from in floats: use a smaller epsilon or rescale the rows."
            )
        peak = -0.5 * (size - self.b) + 0.5 * size * math.log(size / self.b)
        self.log_peak = peak + 0.51 * size * eta + 1e-12 * size  # -ln(1 - eta)/2 is below 0.51 eta

    def draw(self, source: Normals) -> Array:
        """One vector, of multiples of ``GRID``."""
        while True:
            found, block = source.batch(_AT_A_TIME * self.size)
            batch = found.x.reshape(_AT_A_TIME, self.size)
            gaps, doubts = self._gaps(batch, source.words(block, _AT_A_TIME))
            for place in range(_AT_A_TIME):
                draws = functools.partial(source.draws, found, block, place * self.size, self.size)
                sure = abs(gaps[place]) > doubts[place] + self.margin
                if gaps[place] > 0.0 if sure else self._accepts(draws(), source.word(block, place)):
                    return self._rounded(batch[place], draws)

    # In floats.

    def _gaps(self, batch: Array, words: Array) -> tuple[Array, Array]:
        """ln(probability to accept) - ln(uniform) of each proposal, and how much that may be off."""
        error, half = normal().error, 0.5 * self.size
        inside = batch * self.deviations
        lengths, scaled = np.sqrt(np.sum(batch**2, axis=1)), np.sqrt(np.sum(inside**2, axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (inside / scaled[:, np.newaxis]) ** 2 @ self.falls
            ratio = 2.0 * np.log(lengths / scaled)
            uniform = np.log(words * 2.0**-64)
            accept = -t + half * ratio - self.log_peak
            blur = 1.1 * error * float(np.sqrt(np.sum(self.deviations**2))) / scaled
            own = 1.1 * error * math.sqrt(self.size) / lengths
            doubt = self._spread + 4.0 * float(self.falls[0]) * blur + half * (self._skew + 2.0 * (blur + own))
            doubt += 64.0 * _U * (1.0 + t + half * np.abs(ratio) + abs(self.log_peak) - uniform) + 1.0 / words
            gaps = accept - uniform
        return gaps, np.where(np.isfinite(gaps) & np.isfinite(doubt), doubt, np.inf)

    def _rounded(self, z: Array, draws: Callable[[], list[Draw]]) -> Array:
        """The entries of v/|v| on the grid."""
        v = self.factor @ z
        length = math.sqrt(float(v @ v))
        error = (self.size + 8) * _U * math.sqrt(float(z @ z)) + 1.1 * normal().error * math.sqrt(self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            cells = v / length / GRID
            doubt = (4.0 * error / length + 8.0 * _U) / GRID if length else math.inf
        unsure = ~(np.abs(cells - np.floor(cells) - 0.5) > doubt + self.margin)
        result: Array = np.floor(cells + 0.5)
        if unsure.any():
            variables = draws()
            for place in np.flatnonzero(unsure):
                result[place] = self._cell(variables, int(place))
        return result * GRID + 0.0

    # Exactly.

    def _accepts(self, draws: list[Draw], word: Word) -> bool:
        for level in exact.word_levels():
            z = [draw.interval(level) for draw in draws]
            v = _product(self.factor, z)
            (near, far), (low, high) = _square(z), _square(v)
            if near <= 0 or low <= 0:
                continue
            y = v if self.basis is None else _product(self.basis, v)
            form = _quadratic(self.matrix, y)
            weight = Fraction(self.weight)
            ends = [weight * value / length for value in form for length in (low, high)]
            ratio = exact.ln((near, far), level), exact.ln((low, high), level)
            half, start = Fraction(self.size, 2), -Fraction(self.top) - Fraction(self.log_peak)
            lower = start + min(ends) + half * (ratio[0][0] - ratio[1][1])
            upper = start + max(ends) + half * (ratio[0][1] - ratio[1][0])
            shortest, longest = exact.exponential(word, level)  # -ln U
            if -shortest < lower:
                return True
            if -longest >= upper:
                return False
        raise AssertionError("unreachable")

    def _cell(self, draws: list[Draw], place: int) -> float:
        for level in exact.word_levels():
            v = _product(self.factor, [draw.interval(level) for draw in draws])
            low, high = _square(v)
            if low <= 0:
                continue
            lengths = exact.root(low, level)[0], exact.root(high, level)[1]
            ends = [value / length / Fraction(GRID) for value in v[place] for length in lengths]
            found = exact.nearest_integer(min(ends), max(ends))
            if found is not None:
                return float(found)
        raise AssertionError("unreachable")


def _length(matrix: Array) -> float:
    """Frobenius norm, rounded up."""
    return float(np.linalg.norm(matrix)) * (1.0 + 1e-9)


def _envelope(falls: Array) -> float:
    """The root b of sum 1/(b + 2 f_i) = 1, which lies in [1, m] as one f_i is 0. Any b in (0, m] is valid."""
    from scipy.optimize import brentq

    size = float(len(falls))

    def excess(b: float) -> float:
        return float(np.sum(1.0 / (b + 2.0 * falls))) - 1.0

    if excess(size) >= 0.0:  # all f_i are 0, to rounding
        return size
    return float(brentq(excess, 1.0, size, xtol=1e-9)) if excess(1.0) > 0.0 else 1.0


def _square(vector: list[Interval]) -> Interval:
    """|v|^2."""
    ends = [sorted((abs(low), abs(high))) for low, high in vector]
    crossing = [low <= 0 <= high for low, high in vector]
    return exact.total(
        [(Fraction(0) if across else a * a, b * b) for (a, b), across in zip(ends, crossing, strict=True)]
    )


def _product(matrix: Array, vector: list[Interval]) -> list[Interval]:
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    return [exact.total([exact.product((a, a), x) for a, x in zip(row, vector, strict=True)]) for row in rows]


def _quadratic(matrix: Array, vector: list[Interval]) -> Interval:
    """y^T S y."""
    return exact.total([exact.product(a, b) for a, b in zip(vector, _product(matrix, vector), strict=True)])

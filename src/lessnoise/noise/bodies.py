r"""A radius times a uniform point of a body: noise whose density depends on a norm other than the Euclidean one.

A falling density of |x|_K is a mixture of uniform laws on r K: n = R u with u uniform in K and a radius R of its own,
Gamma(M + 1) times a scale for a density proportional to exp(-|x|_K/scale), and a
:class:`~lessnoise.noise.radius.StepRadius` for a staircase. Two bodies are known:

    the cube     [-1, 1]^M, entry by entry;
    the corner   all x with max(0, x_1, ..., x_M) - min(0, x_1, ..., x_M) <= 1.

A point x of the corner is x_i = y_i - y_0 for exactly one y in [0, 1]^(M+1) whose least entry is 0. The y with y_k = 0
are mapped by a matrix of determinant 1 or -1 in the M entries that are left, so these M + 1 faces have the same share
of the corner's volume: x is uniform if k is uniform among 0, ..., M, y_k = 0 and all other y_i are uniform. The word
of entry k is that of -1 then, on every path (:meth:`~lessnoise.noise.stream.Stream.fix`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import ziggurat
from lessnoise.noise.exact_arithmetic import HALF, ZERO, Real
from lessnoise.noise.grid import BLOCK
from lessnoise.noise.radius import scalars
from lessnoise.noise.stream import SCALARS

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.noise.exact_arithmetic import Interval, Word
    from lessnoise.noise.job import Job
    from lessnoise.noise.radius import Radius
    from lessnoise.noise.ziggurat import Density

_FINEST = 2.0**-20  # of the root mean square: the grid is not made finer for an entry with less noise than that
_LOWEST = 1 << 63  # the word of x = -1


@dataclass(frozen=True)
class UniformBody:
    """A radius times a uniform point of the cube or the corner, entry i times ``factors[i]`` (1 if there are none).

    >>> from lessnoise.noise import GammaRadius, Stream, add_noise
    >>> form = UniformBody(GammaRadius(4.0, 1.0, 2.0), corner=True)
    >>> noise = [add_noise(form, np.zeros(3), Stream.of(np.random.default_rng(1)), path=p) for p in ("numba", "numpy")]
    >>> bool((noise[0] == noise[1]).all())
    True
    """

    radius: Radius
    corner: bool = False
    factors: tuple[float, ...] = ()
    _scales: Array | None = field(init=False, repr=False, compare=False)
    _least: float = field(init=False, repr=False, compare=False)

    kernels: ClassVar[str] = "bodies"

    def __post_init__(self) -> None:
        scales = np.array(self.factors, dtype=np.float64)
        if scales.ndim != 1 or not (np.isfinite(scales).all() and (scales > 0.0).all()):
            raise InvalidInput("factors are not all above 0 and finite: pass one positive number for each entry.")
        scales.setflags(write=False)
        alike = scales.size == 0 or bool((scales == 1.0).all())
        object.__setattr__(self, "factors", tuple(scales.tolist()))
        object.__setattr__(self, "_scales", None if alike else scales)
        object.__setattr__(self, "_least", 1.0 if alike else _least(scales))

    @property
    def density(self) -> Density:
        """Uniform on [-1, 1)."""
        return ziggurat.uniform()

    def deviation(self, count: int) -> float:
        """Of the entry with the least factor, so that it keeps its accuracy."""
        if self.factors and len(self.factors) != count:
            raise InvalidInput(
                f"factors has length={len(self.factors)}, but the value has {count} entries: pass one factor for each."
            )
        square = (count + 3.0) / (6.0 * (count + 1.0)) if self.corner else 1.0 / 3.0
        return math.sqrt(self.radius.mean_square() * square) * self._least

    def add(self, job: Job) -> None:
        """One pass over memory: n_i = R x_i in the cube, R (x_i/2 + 1/2 - y_0) in the corner, x_i = 2 y_i - 1."""
        drawn = self.radius.draw(scalars(job.stream))
        radius = Real(drawn.value, drawn.error, exact.shared(drawn.interval))
        cells = 1 / Fraction(job.grid.step)
        if self.corner:
            job.add(radius.times(cells * HALF), _corner(job, radius, cells), self._scales)
        else:
            job.add(radius.times(cells), ZERO, self._scales)


def _least(scales: Array) -> float:
    """The factor that sets the grid."""
    largest = float(scales.max())
    mean = largest * math.sqrt(float(np.mean((scales / largest) ** 2)))
    return max(float(scales.min()), mean * _FINEST)


def _corner(job: Job, radius: Real, cells: Fraction) -> Real:
    """R (1/2 - y_0) in cells; which y is 0 is chosen here."""
    words = scalars(job.stream, SCALARS + 1)
    lowest, first = _uniform_index(next(words), job.count + 1), next(words)
    if lowest > 0:
        job.stream.fix(*divmod(lowest - 1, BLOCK), _LOWEST)

    def interval(level: int) -> Interval:
        near, far = first.uniform(level) if lowest > 0 else (Fraction(0), Fraction(0))
        low, high = exact.product(radius.interval(level), (HALF - far, HALF - near))
        return low * cells, high * cells

    # |1/2 - y_0| <= 1/2 is off by 2^-52, the product by two roundings and the radius's own error.
    size = radius.value * float(cells)
    value = size * (0.5 - (first.first * 2.0**-64 if lowest > 0 else 0.0))
    return Real(value, abs(size) * (radius.error + 2.0**-51) + 2.0**-60, exact.shared(interval))


def _uniform_index(word: Word, count: int) -> int:
    """One of 0, ..., count - 1, each with the same probability: floor(count U)."""
    for level in exact.word_levels():
        low, high = word.uniform(level)
        index = (count * low).__floor__()
        if count * high <= index + 1:
            return index
    raise AssertionError("unreachable")

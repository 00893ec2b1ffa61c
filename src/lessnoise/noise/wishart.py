"""Wishart noise scale N N^T, rounded exactly: the product in floats, doubtful entries in integers, as matrix noise."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import matrix, ziggurat
from lessnoise.noise.grid import BLOCK

if TYPE_CHECKING:
    from lessnoise.noise.exact_arithmetic import Interval
    from lessnoise.noise.job import Job
    from lessnoise.noise.stream import Reader
    from lessnoise.noise.ziggurat import Density


@dataclass(frozen=True)
class Wishart:
    """W = scale N N^T, N of d x (d + 1) independent standard normal entries."""

    scale: float

    kernels: ClassVar[str] = "matrix"

    @property
    def density(self) -> Density:
        """Normals."""
        return ziggurat.normal()

    def deviation(self, count: int) -> float:
        """Of an entry off the diagonal."""
        return self.scale * math.sqrt(math.isqrt(count) + 1)

    def add(self, job: Job) -> None:
        """Draw, multiply, add and round; then settle what the bound leaves open."""
        size = math.isqrt(job.count)
        drawn = np.empty((size, size + 1))
        normals = dataclasses.replace(job, values=drawn.reshape(-1), out=drawn.reshape(-1))
        matrix.normals(normals, normals.out)
        noise = drawn @ drawn.T
        noise *= self.scale
        # Sums in any order are within gamma |N_i| |N_j|, and the entries' own error e adds e sqrt(m) (|N_i| + |N_j|)
        # and e^2 m: less than the product of sqrt(gamma) |N_i| + e sqrt(m/gamma) and the same for j.
        gamma = matrix.gamma(size + 1) + 4.0 * matrix.U
        own = job.density.error * math.sqrt((size + 1) / gamma)
        bound = math.sqrt(self.scale) * (math.sqrt(gamma) * matrix.row_lengths(drawn) + own) * matrix.ABOVE
        doubtful = matrix.rounded(job, noise, bound, bound)
        for level in exact.word_levels():
            if not doubtful:
                return
            reader, left = job.stream.reader(), []
            for i, j, value in doubtful:
                low, high = self._entry(normals, reader, i, j, level)
                step = Fraction(job.grid.step)
                found = exact.nearest_integer((Fraction(value) + low) / step, (Fraction(value) + high) / step)
                if found is None:
                    left.append((i, j, value))
                else:
                    end = int(job.grid.largest_output)
                    job.out[i * size + j] = max(-end, min(end, found)) * job.grid.step + 0.0
            doubtful = left

    def _entry(self, normals: Job, reader: Reader, i: int, j: int, level: int) -> Interval:
        """The sum of products of two rows, from words lengthened by ``level`` levels."""
        low = high = 0
        for pair in zip(*(_row(normals, reader, row, level) for row in (i, j)), strict=True):
            products = [a * b for a, b in itertools.product(*pair)]
            low, high = low + min(products), high + max(products)
        unit = Fraction(self.scale) / (1 << 2 * (matrix.FRACTION_BITS + 64 * level))
        return low * unit, high * unit


def _row(normals: Job, reader: Reader, row: int, level: int) -> list[tuple[int, int]]:
    """One row as intervals of integers."""
    columns = math.isqrt(normals.count) + 1  # of d (d + 1) entries
    start, stop = row * columns, (row + 1) * columns
    found: list[tuple[int, int]] = []
    for block in range(start // BLOCK, (stop - 1) // BLOCK + 1):
        first = normals.part(block).start
        wanted = np.arange(max(start - first, 0), min(stop - first, normals.size(block)))
        found += matrix.integers(normals, reader, block, wanted, level)
    return found

"""The forms of noise that the engine adds exactly: independent entries, isotropic vectors, integers.

A form says what is added; :func:`lessnoise.noise.core.add_noise` adds it. Matrix noise has a module of its own.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference, ziggurat
from lessnoise.noise.exact_arithmetic import ZERO, Real
from lessnoise.noise.grid import BLOCK
from lessnoise.noise.norm import norm, vector_sum
from lessnoise.noise.radius import scalars
from lessnoise.noise.stream import SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise.noise.exact_arithmetic import Interval
    from lessnoise.noise.job import Job, Worker
    from lessnoise.noise.radius import Radius
    from lessnoise.noise.stream import Sequence, Stream
    from lessnoise.noise.ziggurat import Density

    Floats = NDArray[Any]

FIXED = 2.0**27  # 32-bit fixed point for |x| < 16


class Form(Protocol):
    """Real-valued noise."""

    kernels: ClassVar[str]

    @property
    def density(self) -> Density:
        """Of the standard variables that it is made of."""

    def deviation(self, count: int) -> float:
        """Root mean square of an entry, which sets the grid; no more than its power of two matters."""

    def add(self, job: Job) -> None:
        """Draw and add."""


@dataclass(frozen=True)
class Independent:
    """Scale times independent variables of one density, plus ``common`` times a normal variable for all of them."""

    density: Density
    scale: Real
    common: Real | None = None

    kernels: ClassVar[str] = "independent"

    def deviation(self, count: int) -> float:
        """Of one entry."""
        common = 0.0 if self.common is None else self.common.value
        return math.hypot(self.scale.value * self.density.deviation, common)

    def add(self, job: Job) -> None:
        """One pass over memory."""
        cells = 1 / Fraction(job.grid.step)
        shift = ZERO if self.common is None else common_shift(self.common, job.stream, cells)
        job.add(self.scale.times(cells), shift)


def common_shift(deviation: Real, stream: Stream, cells: Fraction) -> Real:
    """The shared variable, in cells."""
    z = exact.draw(ziggurat.normal(), scalars(stream, SCALARS + 1))

    def interval(level: int) -> Interval:
        low, high = exact.product(z.interval(level), deviation.interval(level))
        return low * cells, high * cells

    low, high = interval(2)
    value = float((low + high) / 2)
    return Real(value, abs(value) * 2.0**-52 + 2.0**-60, exact.shared(interval))


@dataclass(frozen=True)
class Integers:
    """Integer noise with an exact sampler of its own, which takes its words from the engine's stream, part by part."""

    draw: Callable[[int, Sequence], Iterator[NDArray[np.int64]]]


class OfNormals:
    """What forms made of standard normals share."""

    @property
    def density(self) -> Density:
        """Normals."""
        return ziggurat.normal()


@dataclass(frozen=True)
class Isotropic(OfNormals):
    """A radius times a uniform direction, which is a vector of normals g divided by its length."""

    radius: Radius

    kernels: ClassVar[str] = "isotropic"

    def deviation(self, count: int) -> float:
        """sqrt(E R^2/M)."""
        return math.sqrt(self.radius.mean_square() / count)

    def add(self, job: Job) -> None:
        """Pass 1: normals and their norm; pass 2: scale, add and round."""
        drawn = self.radius.draw(scalars(job.stream))
        first = _FirstPass(job)
        job.each(first.work)
        first.finish(_factor(first, drawn), ZERO)


@dataclass(frozen=True)
class CorrelatedIsotropic(OfNormals):
    """scale n + common (n_1 + ... + n_M) (1, ..., 1) for an isotropic n: a radius times a uniform direction.

    >>> from lessnoise.noise import GammaRadius, Real, Stream, add_noise
    >>> form = CorrelatedIsotropic(GammaRadius(9.0, 1.0, 2.0), Real.exactly(1.0), Real.exactly(0.5))
    >>> noise = [add_noise(form, np.zeros(9), Stream.of(np.random.default_rng(1)), path=p) for p in ("numba", "numpy")]
    >>> bool((noise[0] == noise[1]).all())
    True
    """

    radius: Radius
    scale: Real
    common: Real

    kernels: ClassVar[str] = "correlated"

    def deviation(self, count: int) -> float:
        """sqrt(E R^2/M ((scale + common)^2 + (M - 1) common^2))."""
        spread = math.hypot(self.scale.value + self.common.value, math.sqrt(count - 1.0) * self.common.value)
        return math.sqrt(self.radius.mean_square() / count) * spread

    def add(self, job: Job) -> None:
        """The same two passes: value + (R/|g|) common (g_1 + ... + g_M) + (R/|g|) scale g_i."""
        drawn = self.radius.draw(scalars(job.stream))
        first = _FirstPass(job, summed=True)
        job.each(first.work)
        ratio = _factor(first, drawn)
        first.finish(_multiple(self.scale, ratio), _common_sum(first, self.common, ratio))


def _multiple(scale: Real, ratio: Real) -> Real:
    """Their product."""

    def interval(level: int) -> Interval:
        return exact.product(scale.interval(level), ratio.interval(level))

    value, error = scale.value * ratio.value, (scale.error + ratio.error + 2.0**-52) * 1.001
    fine = 2.0**-900 < abs(value) < 2.0**900 and error < 2.0**-10
    return Real(value, error if fine else math.inf, exact.shared(interval))


def _common_sum(first: _FirstPass, common: Real, ratio: Real) -> Real:
    """common (g_1 + ... + g_M) R/|g| in cells; each normal in floats is off by its own error."""
    job, density = first.job, first.job.density
    total = exact.shared(functools.partial(vector_sum, job))

    def interval(level: int) -> Interval:
        return exact.product(multiple.interval(level), total(level))

    multiple = _multiple(common, ratio)
    found, size = math.fsum(first.sums), math.fsum(np.abs(first.sums))
    error = job.count * (density.body_error + 2.0**-70) + int(first.tails.sum()) * density.error + size * 2.0**-51
    value = multiple.value * found
    error = (abs(multiple.value) * error + abs(value) * (multiple.error + 2.0**-52)) * 1.001 + 2.0**-60
    return (
        Real(value, error, exact.shared(interval))
        if math.isfinite(error)
        else Real(0.0, math.inf, exact.shared(interval))
    )


class _FirstPass:
    """Normals into the output's memory, where there is any to use; sums of squares a block, of values if ``summed``."""

    def __init__(self, job: Job, *, summed: bool = False) -> None:
        kept = None if job.in_place or job.kernels is None else job.out
        self.job, self.kept, self.summed = job, kept, summed
        self.squares, self.sums = np.zeros(job.blocks), np.zeros(job.blocks)
        self.tails = np.zeros(job.blocks, dtype=np.int64)
        self.slow = np.zeros(job.blocks, dtype=np.bool_)
        self.fixed = kept is not None and job.grid.single
        self.stored = None if kept is None else kept.view(np.int32) if self.fixed else kept

    def work(self, worker: Worker, block: int) -> None:
        """One block."""
        job, status = self.job, 1
        if job.kernels is not None:
            arguments = (*job.words(worker, block), worker.scratch, job.density.tables)
            x, start = worker.scratch[0], 0
            if self.fixed:
                status, square, tails = job.kernels.fixed(*arguments, self.stored, block * BLOCK, FIXED)
            else:
                if self.stored is not None:
                    x, start = self.stored, block * BLOCK
                status, square, tails = job.kernels.standard(*arguments, x, start)
            if self.summed:
                self.sums[block] = job.kernels.total(x[start : start + job.size(block)])
        if status != 0:
            found = reference.sample(job.density, worker.reader, block, job.size(block), job.margin)
            square, tails = math.fsum(found.x * found.x), np.count_nonzero(found.seconds >= 0)
            self.sums[block] = math.fsum(found.x)
            self.slow[block] = True
        self.squares[block], self.tails[block] = square, tails

    def finish(self, factor: Real, shift: Real) -> None:
        """The second pass."""
        if self.kept is None:  # nowhere to keep the normals: they are drawn again
            self.job.add(factor, shift)
        else:
            _second_pass(self.job, factor, shift, self.slow, self.kept)


def _second_pass(job: Job, factor: Real, shift: Real, slow: NDArray[np.bool_], kept: Floats) -> None:
    """From the stored normals; a block that is doubtful in 32-bit fixed point is drawn again in full."""
    single, kernels = job.grid.single, job.kernels
    stored, unit, more = (kept.view(np.int32), 1.0 / FIXED, 0.500001 / FIXED) if single else (kept, 1.0, 0.0)
    line, coarse, tables = job.line(factor, shift), job.line(factor, shift, more), job.density.tables

    def work(worker: Worker, block: int) -> None:
        start, status = block * BLOCK, 1
        if not slow[block]:
            status = kernels.finish(stored, unit, worker.scratch, job.values, job.out, start, job.size(block), coarse)
            if status != 0 and single:
                status = kernels.independent(
                    *job.words(worker, block), worker.scratch, tables, job.values, job.out, start, line, False
                )
        if status != 0:
            job.slowly(worker.reader, block, factor, shift)

    job.each(work)


def _factor(first: _FirstPass, drawn: Real) -> Real:
    """R/|g| in cells. docs/theory/noise-engine.md, lemma 5, bounds the relative error of |g|."""
    job, square, tails = first.job, math.fsum(first.squares), int(first.tails.sum())
    step = Fraction(job.grid.step)
    length = math.sqrt(square)
    value = drawn.value / length / job.grid.step if length else math.inf
    blur = math.sqrt(job.count) * job.density.body_error + math.sqrt(tails) * job.density.error
    error = ((blur / length if length else 1.0) + drawn.error + 2.0**-49 + 2.0**-51) * 1.001
    if not 2.0**-900 < abs(value) < 2.0**900:
        error = 1.0  # underflow or overflow: say nothing about it in floats

    def interval(level: int) -> Interval:
        near, far = norm(job, level)
        if near <= 0:
            return interval(2 * level)
        return exact.product(drawn.interval(level), (1 / step / far, 1 / step / near))

    return Real(value, error, exact.shared(interval))

"""Which forms of noise a device adds, and how: one pass for independent entries, two for isotropic vectors."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import forms as host
from lessnoise.noise.device import twin
from lessnoise.noise.device.sources import AcrossNormals, Laplaces, Normals
from lessnoise.noise.device.tables import IntegerTable
from lessnoise.noise.device.twin import FIXED, Line
from lessnoise.noise.exact_arithmetic import ZERO, Real
from lessnoise.noise.radius import scalars
from lessnoise.noise.ziggurat import LAPLACE, NORMAL

if TYPE_CHECKING:
    from lessnoise.noise.device.twin import Backend, Squares
    from lessnoise.noise.exact_arithmetic import Interval
    from lessnoise.noise.grid import Grid

MOST_STEPS = 1 << 32


@dataclass(frozen=True)
class AcrossSteps:
    """Scale times the sum of weight times the normals of a step, over ``rows`` of (step, weight).

    All rows are drawn from one stream, that of a whole training: a step's normals are the same each time.

    >>> round(AcrossSteps(Real.exactly(2.0), ((3, 1.0), (2, -0.5))).deviation(1) ** 2, 9)
    5.0
    """

    scale: Real
    rows: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        steps = [step for step, _ in self.rows]
        if not steps or len(set(steps)) < len(steps) or not all(0 <= step < MOST_STEPS for step in steps):
            raise InvalidInput(
                f"steps={steps[:8]} are not different numbers from 0 to 2^32: give each step one weight."
            )
        if not all(math.isfinite(weight) for _, weight in self.rows) or not any(weight for _, weight in self.rows):
            raise InvalidInput("weights are not all finite, or all 0: pass the row of a strategy.")

    def deviation(self, count: int) -> float:
        """Of one entry."""
        return self.scale.value * math.hypot(*(weight for _, weight in self.rows))


DeviceForm = host.Independent | host.Isotropic | AcrossSteps | IntegerTable


def is_drawn_on_devices(form: object) -> bool:
    """Whether a device draws this form; the CPU draws all others."""
    if isinstance(form, host.Independent):
        return form.density.kind in (NORMAL, LAPLACE)
    return isinstance(form, host.Isotropic | AcrossSteps | IntegerTable)


def add(form: DeviceForm, backend: Backend, grid: Grid) -> None:
    """Draw and add, whoever does the work."""
    cells = 1 / Fraction(grid.step)
    match form:
        case IntegerTable():
            backend.add_integers(form)
        case host.Independent():
            shift = ZERO if form.common is None else host.common_shift(form.common, backend.stream, cells)
            source = Laplaces() if form.density.kind == LAPLACE else Normals()
            backend.add(Line(source, form.scale.times(cells), shift, grid))
        case AcrossSteps():
            backend.add(Line(AcrossNormals(form.rows), form.scale.times(cells), ZERO, grid))
        case host.Isotropic():
            squares = backend.squares()  # a device begins, and the radius is drawn meanwhile
            drawn = form.radius.draw(scalars(backend.stream))
            backend.add(Line(Normals(), _factor(backend, squares(), drawn, grid), ZERO, grid))


def _factor(backend: Backend, found: Squares, drawn: Real, grid: Grid) -> Real:
    """R/|g| in cells, |g|^2 being known to a few units."""
    stream, count, step = backend.stream, backend.count, Fraction(grid.step)
    length = math.sqrt(math.ldexp(float(found.units), -FIXED))
    value = drawn.value / length / grid.step if length else math.inf
    blur = twin.square_error(found, count) / found.units if found.units else 1.0  # twice that of |g|, which is more
    error = (blur + drawn.error + 2.0**-49) * 1.001
    if not (blur < 2.0**-10 and 2.0**-900 < abs(value) < 2.0**900):
        error = 1.0  # say nothing about it in floats

    def interval(level: int) -> Interval:
        near, far = twin.norm(stream, count, level)
        if near <= 0:
            return interval(2 * level)
        return exact.product(drawn.interval(level), (1 / step / far, 1 / step / near))

    return Real(value, error, exact.shared(functools.cache(interval)))

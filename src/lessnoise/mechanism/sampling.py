"""From a noise law to the engine's noise: each law registers which form it has, and the engine adds it."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.numerics import computable
from lessnoise.noise import (
    CorrelatedIsotropic,
    Independent,
    Integers,
    Isotropic,
    Real,
    UniformBody,
    check_out,
    is_drawn_on_devices,
    output_array,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.noise import DeviceForm, Form, IntegerTable, Stream

    Numbers = NDArray[Any]


_STREAMED = (Independent, Isotropic, Integers, UniformBody, CorrelatedIsotropic)


@functools.singledispatch
def noise_form(law: Law, shape: tuple[int, ...]) -> Form | Integers:
    """What the engine has to draw for this law; a matrix or tensor is a reshaped vector, as in the paper."""
    raise TypeError(f"no sampler is known for {type(law).__name__}")


@noise_form.register(Laplace)
def _(law: Laplace, shape: tuple[int, ...]) -> Form:
    return Independent(noise_engine.laplace(), Real.exactly(law.scale))


@noise_form.register(Radial)
def _(law: Radial, shape: tuple[int, ...]) -> Form:
    variance = Fraction(law.scale) ** 2 / 2
    if law.is_gaussian(math.prod(shape)):
        return Independent(noise_engine.normal(), Real.root(variance))
    if law.k == 1.0 and law.p == 2.0:
        # R1SMG: n = v sqrt(sigma_*) z, z ~ N(0, 1) (paper, equation for the random rank-1 noise).
        return Isotropic(noise_engine.NormalRadius(variance))
    return Isotropic(noise_engine.GammaRadius(law.k, law.p, law.scale))


@functools.lru_cache(maxsize=64)
@computable
def _form(law: Law, shape: tuple[int, ...]) -> Form | Integers:
    return noise_form(law, shape)


@functools.singledispatch
def prepare_noise(
    law: Law, value: Numbers, stream: Stream, *, out: Numbers | None = None, threads: int | None = None
) -> Callable[[], Numbers]:
    """Check the value; the function returned draws, and gives the noisy value on the law's grid.

    Laws whose noise is not simply added register their own: what they release is a function of noisy counts.
    """
    form = _form(law, value.shape)
    if not isinstance(form, Integers):
        return noise_engine.prepare_noise(form, value, stream, out=out, threads=threads)
    integers, flat = form, value.reshape(-1)
    check_out(out, value.shape, np.dtype(np.int64))
    target = output_array(out, value.shape, np.dtype(np.int64))

    def draw_integers() -> Numbers:
        done = 0
        for drawn in integers.draw(flat.size, stream.claim().sequence()):
            part = slice(done, done + drawn.size)
            np.add(drawn, flat[part], out=target[part])
            done = part.stop
        return target.reshape(value.shape)

    return draw_integers


def delivered(released: Numbers, out: Numbers | None) -> Numbers:
    """What is released, in the caller's array if there is one."""
    if out is None:
        return released
    out[...] = released
    return out


def prepare_streamed(
    law: Law, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream, read: Callable[[int, int], Numbers]
) -> Callable[[Callable[[Numbers], None]], None]:
    """The same for a value that is read, and a noisy value that is written, part by part, if ``is_streamed``."""
    form = _form(law, shape)
    if isinstance(form, Integers):
        return noise_engine.prepare_streamed_integers(form, shape, stream, read)
    return noise_engine.prepare_streamed(form, shape, dtype, stream, read)


@functools.singledispatch
def device_integers(law: Law) -> IntegerTable | None:
    """The table by which a device draws integer noise; None for a law that has none."""
    return None


def device_form(law: Law, shape: tuple[int, ...]) -> DeviceForm | None:
    """What a device draws for this law, or None where the CPU has to: it is simply added, and a device knows it.

    >>> device_form(Laplace(3.0), (5,)) is not None
    True
    """
    if law.integer:
        return device_integers(law)
    form = _form(law, shape) if _simply_added(law) else None
    return form if is_drawn_on_devices(form) else None  # type: ignore[return-value]


def is_streamed(law: Law, shape: tuple[int, ...]) -> bool:
    """Whether the noise can be added part by part: it is simply added, and its entries need not be mixed."""
    return _simply_added(law) and isinstance(_form(law, shape), _STREAMED)


def has_independent_entries(law: Law, shape: tuple[int, ...]) -> bool:
    """Whether many arrays of the noise are one long one: it is simply added, each entry on its own."""
    form = _form(law, shape) if _simply_added(law) else None
    return isinstance(form, Integers) or (isinstance(form, Independent) and form.common is None)


def _simply_added(law: Law) -> bool:
    return prepare_noise.dispatch(type(law)) is prepare_noise.dispatch(object)


@functools.singledispatch
def draw_noise(law: Law, shape: tuple[int, ...], rng: np.random.Generator | None = None) -> Numbers:
    """The noise alone, for experiments: what would be added to an array of zeros."""
    zeros = np.zeros(shape, dtype=np.int64 if law.integer else np.float64)
    return prepare_noise(law, zeros, noise_engine.Stream.of(rng))()


@functools.singledispatch
def values_drawn(law: Law, dimension: int) -> int:
    """How many variables a release draws: the number of entries, unless a law says otherwise."""
    return dimension


def grid_step(law: Law, shape: tuple[int, ...], dtype: np.dtype[Any] | type = np.float64) -> float | None:
    """Outputs are multiples of this power of two; 1 for integers, None where the output is computed from noisy counts.

    >>> grid_step(Laplace(3.0), (5,))  # 2^-8 of the largest power of two below the deviation, 4.24
    0.015625
    """
    if not _simply_added(law):
        return None
    form = _form(law, shape)
    if isinstance(form, Integers):
        return 1.0
    return noise_engine.Grid.of(form.deviation(math.prod(shape)), dtype).step

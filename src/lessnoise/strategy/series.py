"""Power series, and sums of products with shifted numbers, by FFT with proved errors."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array, IntArray

UNIT = 2.0**-53
PRECISE = np.longdouble if np.finfo(np.longdouble).nmant == 63 else np.float64  # 80 bits, where the processor has them
_STAGE = 12.0  # roundings of an FFT's stage: a product with a twiddle off by 4 units in modulus, and an addition
_FIRST_BLOCK = 128
_NODES = (9, 13)  # of the interpolation of a panel
_FIRST_PANEL = 32
_ENOUGH = 1e-6  # relative difference of two interpolations that agree


def power_series(power: float, size: int) -> Array:
    """The coefficients of (1 - x)^power.

    >>> power_series(-1.0, 3).tolist(), power_series(2.0, 4).tolist()
    ([1.0, 1.0, 1.0], [1.0, -2.0, 1.0, 0.0])
    """
    places = np.arange(1, size, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((places - 1.0 - power) / places)])


def reciprocal(series: Array) -> Array:
    """The coefficients of 1/c(x), by Newton's iteration g <- g (2 - c g).

    >>> reciprocal(np.array([1.0, -1.0, 0.0])).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    found = np.array([1.0 / series[0]])
    while len(found) < len(series):
        size = min(2 * len(found), len(series))
        longer = np.concatenate([found, np.zeros(size - len(found))])
        rest = -_product(longer, series[:size])
        rest[0] += 2.0
        found = _product(longer, rest)
    return found


def convolved(values: NDArray[Any], series: NDArray[Any]) -> NDArray[Any]:
    """sum_k c_(i-k) x_k along the last axis: for a block of places, by FFT of what comes before its end."""
    found = np.empty_like(values)
    for start, stop in blocks(len(series)):
        found[..., start:stop] = _product(values[..., :stop], series[:stop])[..., start:]
    return found


def correlated(values: Array, series: Array) -> Array:
    """sum_k c_(k-i) x_k along the last axis, the transpose: for a block, by FFT of what comes after its start."""
    found = np.empty_like(values)
    for start, stop in later_blocks(len(series)):
        turned = _product(values[..., start:][..., ::-1], series[: len(series) - start])
        found[..., start:stop] = turned[..., ::-1][..., : stop - start]
    return found


def blocks(size: int) -> Iterator[tuple[int, int]]:
    """Places from 0 on, in blocks that grow: scales may fall from the first on, and an FFT's errors with them."""
    start, stop = 0, _FIRST_BLOCK
    while start < size:
        yield start, min(stop, size)
        start, stop = stop, 4 * stop


def later_blocks(size: int) -> Iterator[tuple[int, int]]:
    """Blocks that grow from either end, as scales may fall towards both."""
    start, stop = 0, _FIRST_BLOCK
    while stop < size // 2:
        yield start, stop
        start, stop = stop, 8 * stop
    while start < size:
        stop = size if size - start <= _FIRST_BLOCK else (max(start, size // 2 - 1) + size + 1) // 2
        yield start, stop
        start = stop


def rounding(series: NDArray[Any], values: NDArray[Any]) -> float:
    """How far a convolution by FFT can be off, in the numbers of the values' precision.

    In an FFT of length 2^L, with e the error of a stage, every term is multiplied by 1 + d, |d| <= L e, on its way to a
    result (Higham, 2002, section 24.1): x^ is off by L e ||x||_1 at most everywhere, and c^ by L e sqrt(2^L) ||c||_2 in
    the l2 norm. With |x^| <= ||x||_1, both errors and that of the inverse are at most L e ||c||_2 ||x||_1 there.
    """
    unit = float(np.finfo(values.dtype).eps) / 2.0
    stages = _length(len(series)).bit_length() - 1
    sizes = float(np.linalg.norm(series.astype(np.float64))) * float(np.abs(values).sum(axis=-1).max())
    return 1.01 * unit * (3.0 * _STAGE * stages + 8.0) * sizes


def _length(size: int) -> int:
    return 1 << max(1, (2 * size - 1).bit_length())


def _product(values: NDArray[Any], series: NDArray[Any]) -> NDArray[Any]:
    from scipy import fft

    size = len(series)
    spectrum = fft.rfft(values, _length(size)) * fft.rfft(series, _length(size))
    return np.asarray(fft.irfft(spectrum, _length(size))[..., :size])


# Sums of smooth functions.


def smooth_sum(values: Callable[[IntArray], Array], size: int) -> float:
    """The sum of values(0), ..., values(size - 1), smooth in the logarithms of the distances from both ends.

    Panels that double in length from either end are interpolated by polynomials; if two degrees do not agree, nor does
    the function with what is assumed, and all values are added.
    """
    if size > 4 * _NODES[0] * math.log2(size):
        coarse, fine = (float(weights @ values(places)) for places, weights in (_nodes(size, n) for n in _NODES))
        if abs(coarse - fine) <= _ENOUGH * abs(fine):
            return fine
    return math.fsum(values(np.arange(size)))


@functools.lru_cache(maxsize=16)
def _nodes(size: int, degree: int) -> tuple[IntArray, Array]:
    ends, length = [0], _FIRST_PANEL
    while ends[-1] + length < size // 2:
        ends.append(ends[-1] + length)
        length = ends[-1]
    ends = [*ends, size // 2]
    ends += [size - end for end in ends[-2::-1]]
    places, weights = [], []
    for start, stop in itertools.pairwise(ends):
        inside = np.arange(start, stop)
        nodes = inside
        if len(inside) > 2 * degree and 0 < start < stop < size:  # the ends are added one by one
            chebyshev = -np.cos((np.arange(degree) + 0.5) * math.pi / degree)
            nodes = np.unique(np.rint(start + (stop - 1 - start) * (chebyshev + 1.0) / 2.0).astype(np.int64))
        places.append(nodes)
        if len(nodes) == len(inside):
            weights.append(np.ones(len(nodes)))
            continue
        basis = np.polynomial.chebyshev.chebvander(_to_unit(nodes, start, stop), len(nodes) - 1)
        sums = np.polynomial.chebyshev.chebvander(_to_unit(inside, start, stop), len(nodes) - 1).sum(axis=0)
        weights.append(np.linalg.solve(basis.T, sums))
    return np.concatenate(places), np.concatenate(weights)


def _to_unit(places: IntArray, start: int, stop: int) -> Array:
    return np.asarray(2.0 * (places - start) / (stop - 1 - start) - 1.0)

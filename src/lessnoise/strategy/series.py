"""Power series, and sums of products with shifted numbers, by FFT with proved errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Array

UNIT = 2.0**-53
_STAGE = 8.0  # roundings of an FFT's stage: Higham (2002), theorem 24.2, has 1 + 4 sqrt(2), with accurate twiddles
_FIRST_BLOCK = 128


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


def _length(size: int) -> int:
    return 1 << max(1, (2 * size - 1).bit_length())


def blocks(size: int) -> Iterator[tuple[int, int]]:
    """Places from 0 on, in blocks that double: scales may grow with the distance, and an FFT's errors with them."""
    start, stop = 0, _FIRST_BLOCK
    while start < size:
        yield start, min(stop, size)
        start, stop = stop, 2 * stop


def convolved(values: Array, series: Array) -> Array:
    """sum_k c_(i-k) x_k along the last axis: for a block of places, by FFT of what comes before its end."""
    found = np.empty(values.shape)
    for start, stop in blocks(len(series)):
        found[..., start:stop] = _product(values[..., :stop], series[:stop])[..., start:]
    return found


def correlated(values: Array, series: Array) -> Array:
    """sum_k c_(k-i) x_k along the last axis, the transpose: for a block, by FFT of what comes after its start."""
    found = np.empty(values.shape)
    for start, stop in blocks(len(series)):
        turned = _product(values[..., start:][..., ::-1], series[: len(series) - start])
        found[..., start:stop] = turned[..., ::-1][..., : stop - start]
    return found


def _product(values: Array, series: Array) -> Array:
    from scipy import fft

    size = len(series)
    spectrum = fft.rfft(values, _length(size)) * fft.rfft(series, _length(size))
    return np.asarray(fft.irfft(spectrum, _length(size))[..., :size])


def rounding(series: Array, values: Array) -> float:
    """How far a convolution by FFT can be off, with a rounding of each value before and one of each result after.

    An FFT of length 2^L is off by L e in the l2 norm, relative to its result, e the error of a stage (Higham, theorem
    24.2). With c^ and x^ the transforms and |c^| <= ||c||_1, the error of c^ x^ is at most sqrt(2^L) times
    L e (||c||_2 ||x||_1 + ||c||_1 ||x||_2), and the inverse adds L e ||c||_2 ||x||_1 of its own.
    """
    stages = _length(len(series)).bit_length() - 1
    first = float(np.linalg.norm(series)) * float(np.abs(values).sum(axis=-1).max())
    second = float(np.abs(series).sum()) * float(np.linalg.norm(values, axis=-1).max())
    return 1.01 * UNIT * (_STAGE * stages * (2.0 * first + second) + 8.0 * first)

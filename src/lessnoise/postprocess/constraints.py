"""Constraints: make a noisy value obey what everyone knows of the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array


def nonnegative(value: ArrayLike) -> Array:
    """Replace negative entries by 0.

    *Privacy*: none spent.
    *Bias*: upwards, for small true entries: sums over many empty cells come out too high, so take sums first.
    *Helps*: always, entry by entry, when the truth cannot be negative, as for counts: no entry moves away from its
    true value. An entry that is truly 0 loses half of its squared error under symmetric noise.

    >>> nonnegative([-1.5, 0.0, 2.5]).tolist()
    [0.0, 0.0, 2.5]
    """
    return np.maximum(released(value), 0.0) + 0.0  # no negative zeros


def lifted(matrix: Array, least: Array | float) -> tuple[Array, Array]:
    """Add to the diagonal what brings the smallest eigenvalue up to ``least``, and tell how much that was.

    *Privacy*: none spent.
    *Bias*: what is added; none where every eigenvalue is large enough.
    *Helps*: least squares from noisy second moments, which can have eigenvalues that no true ones have. With
    ``least`` about the noise's own largest eigenvalue, solutions do not blow up. Several matrices may be given along
    the first axes.

    >>> lifted(np.array([[1.0, 0.0], [0.0, -0.5]]), 0.25)[0].tolist()
    [[1.75, 0.0], [0.0, 0.25]]
    """
    added = np.maximum(least - np.linalg.eigvalsh(matrix)[..., 0], 0.0)
    return matrix + np.asarray(added)[..., np.newaxis, np.newaxis] * np.eye(matrix.shape[-1]), added


def round_to_integers(value: ArrayLike) -> Array:
    """Round every entry to the nearest whole number; the result is still an array of floats.

    *Privacy*: none spent.
    *Bias*: none under symmetric noise around a whole number.
    *Helps*: the squared error only if the truth is a whole number and the noise small, a normal standard deviation
    below 0.28. With more noise it adds up to 1/12 to the squared error of an entry and serves appearance.

    >>> round_to_integers([1.2, -0.2, 7.6]).tolist()
    [1.0, 0.0, 8.0]
    """
    return np.rint(released(value)) + 0.0  # no negative zeros


def symmetrise(matrix: ArrayLike) -> Array:
    """Average a square matrix with its transpose.

    *Privacy*: none spent.
    *Bias*: none, if the true matrix is symmetric.
    *Helps*: always then: independent noise off the diagonal loses half its variance, as each pair is averaged.
    Noise that is symmetric already stays as it is.

    >>> symmetrise([[1.0, 4.0], [2.0, 5.0]]).tolist()
    [[1.0, 3.0], [3.0, 5.0]]
    """
    noisy = released(matrix, "matrix")
    if noisy.ndim != 2 or noisy.shape[0] != noisy.shape[1]:
        raise InvalidInput(f"matrix.shape={noisy.shape} is not square: pass an (n, n) matrix.")
    result: Array = 0.5 * noisy + 0.5 * noisy.T
    return result


def restrict(value: ArrayLike, valid: ArrayLike, fill: float = 0.0) -> Array:
    """Keep the entries that can occur, by public knowledge, and set the others to ``fill``.

    *Privacy*: none spent, as long as ``valid`` is public: a map of land and water, never the cells that happen to be
    empty in the data.
    *Bias*: none, if the excluded entries are truly ``fill``.
    *Helps*: always then: those entries lose all their noise.

    >>> restrict([[5.2, -0.8], [0.3, 7.1]], [[True, False], [False, True]]).tolist()
    [[5.2, 0.0], [0.0, 7.1]]
    """
    noisy = released(value)
    try:
        mask = np.asarray(valid)
    except ValueError as error:
        raise InvalidInput(f"valid is not a rectangular array ({error}): pass an array of booleans.") from None
    if mask.dtype != np.bool_:
        raise InvalidInput(f"valid.dtype={mask.dtype} is not bool: pass True where an entry can occur, else False.")
    if mask.shape != noisy.shape:
        raise InvalidInput(f"valid.shape={mask.shape} differs from value.shape={noisy.shape}: pass one flag per entry.")
    return np.where(mask, noisy, validation.number("fill", fill))


# Input checks.


def released(value: ArrayLike, name: str = "value") -> Array:
    """A finite real array of at least one entry, as float64: what has its noise already may be rounded."""
    given = validation.numeric_array(value, name)
    result = validation.real_array(given.astype("f8"), name, repair="pass a value as it was released.")
    if result.size == 0:
        raise InvalidInput(f"{name}.shape={result.shape} holds no entries: pass a released array.")
    return result


def centre(given: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """One public number, or one for each entry."""
    result = released(given, name)
    if result.shape not in ((), shape):
        raise InvalidInput(
            f"{name}.shape={result.shape} differs from value.shape={shape}: pass one number or one each."
        )
    return result

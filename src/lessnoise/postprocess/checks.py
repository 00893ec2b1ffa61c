"""Input checks shared by the post-processing functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def released(value: ArrayLike, name: str = "value") -> NDArray[np.float64]:
    """A finite real array of at least one entry, as float64."""
    try:
        result = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is not a rectangular array ({error}): pass a NumPy array.") from None
    if result.dtype.kind not in "iuf":
        raise InvalidInput(f"{name}.dtype={result.dtype} is not numeric: pass a released array, such as release.value.")
    if result.size == 0:
        raise InvalidInput(f"{name}.shape={result.shape} holds no entries: pass a released array.")
    converted = result.astype(np.float64, copy=False)
    if not np.isfinite(converted).all():
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(converted))[0])
        where = list(position) if position else ""
        raise InvalidInput(f"{name}{where}={converted[position]} is not finite: pass a value as it was released.")
    return converted


def centre(given: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """One public number, or one for each entry."""
    result = released(given, name)
    if result.shape not in ((), shape):
        raise InvalidInput(
            f"{name}.shape={result.shape} differs from value.shape={shape}: pass one number or one each."
        )
    return result

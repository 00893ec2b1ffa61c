"""Input checks shared by the post-processing functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def released(value: ArrayLike, name: str = "value") -> NDArray[np.float64]:
    """A finite real array of at least one entry, as float64: what has its noise already may be rounded."""
    given = validation.numeric_array(value, name)
    result = validation.real_array(given.astype("f8"), name, repair="pass a value as it was released.")
    if result.size == 0:
        raise InvalidInput(f"{name}.shape={result.shape} holds no entries: pass a released array.")
    return result


def centre(given: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """One public number, or one for each entry."""
    result = released(given, name)
    if result.shape not in ((), shape):
        raise InvalidInput(
            f"{name}.shape={result.shape} differs from value.shape={shape}: pass one number or one each."
        )
    return result

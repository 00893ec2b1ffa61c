"""Long tables of numbers in descriptions: base64 of doubles instead of one line for each."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_DOUBLES = "float64"
_DEEPEST = 60
_LONG = 8  # numbers of which a list becomes one text


def compact(values: Any) -> Any:  # noqa: ANN401
    """Plain values with each long list of floats as ``{"float64": base64 of little-endian doubles}``.

    >>> compact({"edges": [0.0] * 8, "shape": [2, 3]})["shape"]
    [2, 3]
    >>> list(compact({"edges": [0.0] * 8})["edges"])
    ['float64']
    """
    if isinstance(values, dict):
        return {name: compact(value) for name, value in values.items()}
    if not isinstance(values, list):
        return values
    if len(values) >= _LONG and all(type(value) is float for value in values):
        return encoded(values)
    return [compact(value) for value in values]


def encoded(values: ArrayLike) -> dict[str, str]:
    """Numbers, row by row, as base64 of little-endian doubles.

    >>> encoded([0.0])
    {'float64': 'AAAAAAAAAAA='}
    """
    return {_DOUBLES: base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")}


def expanded(values: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """The inverse of :func:`compact`; what lies deeper than any description is left as it is.

    >>> expanded(compact({"edges": [0.5] * 8})) == {"edges": [0.5] * 8}
    True
    """
    if depth > _DEEPEST:
        return values
    if isinstance(values, list):
        return [expanded(value, depth + 1) for value in values]
    if not isinstance(values, dict):
        return values
    if set(values) != {_DOUBLES}:
        return {name: expanded(value, depth + 1) for name, value in values.items()}
    try:
        content = base64.b64decode(values[_DOUBLES], validate=True)
        return np.frombuffer(content, dtype="<f8").tolist()
    except (TypeError, ValueError, binascii.Error):
        raise InvalidInput(
            f"a table with {_DOUBLES!r} is not base64 of doubles: read the file as it was written."
        ) from None

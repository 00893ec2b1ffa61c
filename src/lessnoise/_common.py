"""What every layer shares: names of types, the number of cores, and how a frozen description takes checked values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]
    Shape = int | Sequence[int]  # as a caller writes it
    Progress = Callable[[str, int, int], None]  # a label, how much is done, of how much


def settle(description: object, **values: object) -> None:
    """Put checked values in the fields of a frozen dataclass, while it is being made."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""What every layer shares: names of types, and the number of cores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Shape = int | Sequence[int]  # as a caller writes it
    Progress = Callable[[str, int, int], None]  # a label, how much is done, of how much


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""How the benchmarks take time."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def median_seconds(task: Callable[[], object], repeats: int = 5, before: Callable[[], object] = lambda: None) -> float:
    """The median time of a task; ``before`` is called ahead of each turn, outside of the time."""
    times = []
    for _ in range(repeats):
        before()
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return statistics.median(times)

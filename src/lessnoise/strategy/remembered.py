"""Strategies that took time to find, kept in the folder of answers."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from lessnoise import cache
from lessnoise.errors import LessnoiseError
from lessnoise.strategy.base import Strategy, read_strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.workload import Workload

VERSION = 1  # of the methods; another one forgets what was found


def remembered(
    workload: Workload, method: str, order: int, find: Callable[[], Strategy], longest: float = math.inf
) -> Strategy:
    """What a method finds for a workload, from the folder if it is there, whole, and of the right size.

    ``order``: of the norm that the noise goes by; ``longest``: that no column of the strategy exceeds in it.
    """
    asked = hashlib.sha256(json.dumps(workload.to_dict(), sort_keys=True).encode()).hexdigest()
    question: dict[str, Any] = {"strategy": method, "order": order, "version": VERSION, "workload": asked}
    stored = cache.load(question)
    if stored is not None:
        try:
            known = read_strategy(stored)
            if known.shape == workload.shape and (longest == math.inf or known.norm(order) <= longest):
                return known
        except LessnoiseError:
            pass  # damaged: found again
    found = find()
    cache.save(question, found.to_dict())
    return found

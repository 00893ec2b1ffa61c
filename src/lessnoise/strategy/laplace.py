"""What is worth measuring with noise that is scaled to the l1 norm of the columns, as Laplace noise is."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from lessnoise import cache
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations
from lessnoise.strategy.base import Strategy, read_strategy
from lessnoise.strategy.optimise import optimise_blocks, optimise_hats, optimise_p_identity
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.squares import lines_of, squares_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.workload import Workload

VERSION = 1  # of the methods below; another one forgets what was found
_FLAT = 512  # cells whose sums are optimised entry by entry
_DENSE = 1600  # the same, for questions of a matrix
_HATS = 12800  # cells under hats without blocks


def laplace_strategies(workload: Workload) -> Iterator[Strategy]:
    """Strategies for the questions along one axis, all with columns of l1 norm at most 1, the best known first.

    What an optimisation finds is kept in the folder of :mod:`lessnoise.cache`. The cells themselves come last.

    >>> from lessnoise.workload import prefixes
    >>> [(found.norm(1), round(2 * found.trace(prefixes(32)) / 32, 1)) for found in laplace_strategies(prefixes(32))]
    [(1.0, 19.7), (1.0, 33.0)]
    """
    line, size = lines_of(workload), workload.cells
    if size > 1 and (line is None or line.coefficients.any()):
        if size <= (_DENSE if line is None else _FLAT):
            yield _remembered(workload, "sums")
        elif line is not None:
            yield _remembered(workload, "hats" if size <= _HATS else "blocks")
    yield PIdentity(Deviations.constant(1.0, size))


def _remembered(workload: Workload, method: str) -> Strategy:
    """The strategy that a method finds, from the folder of answers if it is there."""
    asked = hashlib.sha256(json.dumps(workload.to_dict(), sort_keys=True).encode()).hexdigest()
    question: dict[str, Any] = {"strategy": method, "version": VERSION, "workload": asked}
    stored = cache.load(question)
    if stored is not None:
        try:
            found = read_strategy(stored)
            if found.shape == workload.shape and found.norm(1) <= 1.0:
                return found
        except InvalidInput:
            pass  # damaged: found again
    line = lines_of(workload)
    if line is None or method == "sums":
        found = optimise_p_identity(squares_of(workload))
    elif method == "hats":
        found = optimise_hats(line, workload.cells, _step(workload.cells), steps=400 if workload.cells <= 2048 else 200)
    else:
        found = optimise_blocks(line, workload.cells, 1000 if workload.cells <= 200_000 else 2000)
    cache.save(question, found.to_dict())
    return found


def _step(size: int) -> int:
    """Cells between two nodes: 16 or 20 are best, and more than 320 nodes take too long."""
    return max(16 if size <= 1024 else 20, -(-size // 320))

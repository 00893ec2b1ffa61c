"""What is worth measuring with noise that is scaled to the l1 norm of the columns, as Laplace noise is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.frozen_matrix import Deviations
from lessnoise.strategy.optimise import optimise_blocks, optimise_hats, optimise_p_identity
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.remembered import remembered
from lessnoise.strategy.squares import lines_of, squares_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.strategy.base import Strategy
    from lessnoise.workload import Workload

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
    """The strategy that a method finds."""
    return remembered(workload, method, 1, lambda: _found(workload, method), longest=1.0)


def _found(workload: Workload, method: str) -> Strategy:
    line, size = lines_of(workload), workload.cells
    if line is None or method == "sums":
        return optimise_p_identity(squares_of(workload))
    if method == "hats":
        return optimise_hats(line, size, _step(size), steps=400 if size <= 2048 else 200)
    return optimise_blocks(line, size, 1000 if size <= 200_000 else 2000)


def _step(size: int) -> int:
    """Cells between two nodes: 16 or 20 are best, and more than 320 nodes take too long."""
    return max(16 if size <= 1024 else 20, -(-size // 320))

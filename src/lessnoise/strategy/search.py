"""Strategies worth trying for a workload: for noise that goes by l1 norms of columns, or by l2 norms."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.strategy.dense import Dense
from lessnoise.strategy.gaussian import optimal_gaussian
from lessnoise.strategy.laplace import laplace_strategies
from lessnoise.strategy.marginal import is_marginals, marginal_strategies
from lessnoise.strategy.optimise import optimise_p_identity
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.product import Product
from lessnoise.strategy.remembered import remembered
from lessnoise.strategy.simple import Cells, Total
from lessnoise.strategy.toeplitz import toeplitz_strategies
from lessnoise.strategy.tree import tree
from lessnoise.workload import TOTAL, Block, Factor, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.strategy.base import Strategy

L1, L2 = 1, 2
_DENSE = 1024  # cells up to which a strategy may be any matrix
_SMALL = 64  # cells below which the best matrix is at hand; beyond, Toeplitz ones are within 0.3% of it
_FEWEST_BRANCHES = 4
_ROUNDS = 3  # through the axes, where the parts of a workload weigh each other


def strategies(workload: Workload, order: int) -> Iterator[Strategy]:
    """Candidates for noise that goes by the l1 or l2 norms of columns; those that took long are remembered."""
    yield Cells(workload.shape)
    if len(workload.shape) == 1:
        yield from _line(workload, order)
        return
    yield _product(workload, order)
    if is_marginals(workload):
        yield from marginal_strategies(workload)


def any_matrix(workload: Workload, order: int) -> Iterator[Strategy]:
    """The best matrix that is found for a small table, where no structure is known to be as good; it takes long."""
    several = len(workload.shape) > 1
    known = several and len(workload.parts) == 1  # products of the best are the best
    if workload.cells > _DENSE or known or is_marginals(workload) or (order == L1 and not several):
        return
    yield remembered(workload, "matrix", order, lambda: _matrix(workload, order))


def _matrix(workload: Workload, order: int) -> Strategy:
    if order == L2:
        return optimal_gaussian(workload)[0]
    return Dense(FrozenMatrix(optimise_p_identity(workload.gram()).matrix()), workload.shape)


def _line(workload: Workload, order: int) -> Iterator[Strategy]:
    """Along one axis."""
    if all(factors[0].kind == TOTAL for _, factors in workload.terms()):
        yield Total(workload.cells)
    elif order == L1:
        cells = PIdentity(Deviations.constant(1.0, workload.cells))
        yield from (each for each in laplace_strategies(workload) if each != cells)
        yield from _whole_trees(workload.cells)
    else:
        yield from toeplitz_strategies(workload)


def _whole_trees(size: int) -> Iterator[Strategy]:
    """Trees of two and three levels with weights of 1, for noise of whole numbers, which is less at a large epsilon."""
    for height in (2, 3):
        branching = math.ceil(size ** (1.0 / height) - 1e-9)
        if branching >= _FEWEST_BRANCHES:
            yield tree(size, branching)


def _product(workload: Workload, order: int) -> Strategy:
    """One strategy for each axis, in turns: what the others leave of each part of the workload is its weight here."""
    terms = list(workload.terms())
    axes = len(workload.shape)
    traces = [[1.0] * axes for _ in terms]
    chosen: list[Strategy] = [Cells((size,)) for size in workload.shape]
    for _ in range(_ROUNDS if len(terms) > 1 else 1):
        for axis in range(axes):
            shares: dict[Factor, float] = {}
            for (weight, factors), known in zip(terms, traces, strict=True):
                share = weight * math.prod(known[other] for other in range(axes) if other != axis)
                shares[factors[axis]] = shares.get(factors[axis], 0.0) + share
            chosen[axis] = best_line(_weighed(shares), order)
            for (_, factors), known in zip(terms, traces, strict=True):
                known[axis] = float(chosen[axis].factor_trace(factors[axis]))  # type: ignore[attr-defined]
    return Cells(workload.shape) if all(isinstance(axis, Cells) for axis in chosen) else Product(tuple(chosen))


def _weighed(shares: dict[Factor, float]) -> Workload:
    most = max(shares.values())
    return Workload(tuple(Block((factor,), math.sqrt(share / most)) for factor, share in shares.items()))


@functools.lru_cache(maxsize=64)
def best_line(workload: Workload, order: int) -> Strategy:
    """The strategy along one axis with the least error for noise of one norm."""
    found: list[Strategy] = [Cells(workload.shape), *_line(workload, order)]
    if order == L2 and (len(workload.parts) > 1 or len(found) == 1 or workload.cells < _SMALL):
        found += any_matrix(workload, order)
    return min(found, key=lambda each: each.norm(order) ** 2 * each.trace(workload))

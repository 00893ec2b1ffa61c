"""Linear questions about a table of counts, as a frozen description that never builds a matrix of all of them.

A workload W stacks weighted products of factors, one factor for each axis: W = [w_1 F_11 x F_12 x ..; w_2 F_21 x ...].
All errors of linear answers depend on W^T W = sum_k w_k^2 (F_k1^T F_k1) x (F_k2^T F_k2) x ... alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Facts, Listed
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.harmless import shown
from lessnoise.workload.factor import IDENTITY, MATRIX, PREFIXES, RANGES, TOTAL, Factor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from lessnoise._common import Array, Shape

_MOST_ANSWERS = 1 << 26


@dataclass(frozen=True)
class Block:
    """Products of the questions along each axis, times a weight."""

    factors: tuple[Factor, ...]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.factors or not all(isinstance(factor, Factor) for factor in self.factors):
            raise InvalidInput(f"factors={shown(self.factors)} are none: pass one for each axis of the table.")
        settle(self, factors=tuple(self.factors), weight=validation.positive("weight", self.weight))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return tuple(factor.size for factor in self.factors)

    @property
    def queries(self) -> int:
        """How many questions."""
        return math.prod(factor.queries for factor in self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"weight": self.weight, "factors": [factor.to_dict() for factor in self.factors]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Block:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("weight", "factors"), "part of a workload")
        return cls(tuple(map(Factor.from_dict, validation.entries("factors", given["factors"]))), given["weight"])


@dataclass(frozen=True)
class Workload(Listed):
    """What is asked of a table: parts, one after the other. Make one with :func:`prefixes`, :func:`ranges`, and so on.

    ``a * b`` asks every question of a along the first axes together with every one of b along the next; ``a + b`` asks
    both of the same table; ``3.0 * a`` weighs answers, so that an error of 1 counts as one of 3.

    >>> days = prefixes(7)
    >>> both = days * total(2) + identity(7, 2)
    >>> both.shape, both.queries
    ((7, 2), 21)
    >>> both.answers(np.ones((7, 2)))[:3].tolist()
    [2.0, 4.0, 6.0]
    """

    parts: tuple[Block, ...]

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Block) for part in self.parts):
            raise InvalidInput(
                f"parts={shown(self.parts)} are none of a workload: use lessnoise.workload.prefixes, say."
            )
        settle(self, parts=tuple(self.parts))
        if len({part.shape for part in self.parts}) > 1:
            raise InvalidInput(
                f"shapes={[part.shape for part in self.parts]} of the parts differ: ask all of the same table."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return self.parts[0].shape

    @property
    def cells(self) -> int:
        """How many numbers the table has."""
        return math.prod(self.shape)

    @property
    def queries(self) -> int:
        """How many questions."""
        return sum(part.queries for part in self.parts)

    def answers(self, table: ArrayLike) -> Array:
        """All answers for a table, part after part, each in C order."""
        given = np.asarray(table)
        if given.shape != self.shape:
            raise InvalidInput(
                f"table.shape={given.shape} is not the workload's shape={self.shape}: pass such a table."
            )
        if self.queries > _MOST_ANSWERS:
            raise InvalidInput(f"queries={self.queries} are more than {_MOST_ANSWERS}: ask for parts of the workload.")
        found = []
        for part in self.parts:
            answers = given
            for axis, factor in enumerate(part.factors):
                answers = factor.apply(answers, axis)
            found.append(part.weight * answers.ravel())
        return np.concatenate(found)

    def matrix(self) -> Array:
        """W itself, for small tables."""
        if self.queries * self.cells > _MOST_ANSWERS:
            raise InvalidInput(f"queries={self.queries} of cells={self.cells} make too large a matrix: use answers.")
        return np.concatenate([part.weight * _kron([f.matrix() for f in part.factors]) for part in self.parts])

    def gram(self) -> Array:
        """W^T W, for tables of some thousand cells."""
        if self.cells**2 > _MOST_ANSWERS:
            raise InvalidInput(f"cells={self.cells} make too large a matrix of their squares: use terms.")
        found = np.zeros((self.cells, self.cells))
        for weight, factors in self.terms():
            found += weight * _kron([factor.gram() for factor in factors])
        return found

    def terms(self) -> Iterator[tuple[float, tuple[Factor, ...]]]:
        """W^T W as a sum: each squared weight with the factors whose F^T F are multiplied."""
        for part in self.parts:
            yield part.weight**2, part.factors

    def diagonal(self) -> Array:
        """Of W^T W: how often each cell counts, in the shape of the table."""
        total_of = np.zeros(self.shape)
        for weight, factors in self.terms():
            total_of += weight * functools.reduce(np.multiply.outer, (factor.diagonal() for factor in factors))
        return total_of

    def __add__(self, other: Workload) -> Workload:
        return Workload(self.parts + other.parts) if isinstance(other, Workload) else NotImplemented

    def __mul__(self, other: Workload) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        pairs = itertools.product(self.parts, other.parts)
        return Workload(tuple(Block(a.factors + b.factors, a.weight * b.weight) for a, b in pairs))

    def __rmul__(self, weight: float) -> Workload:
        factor = validation.positive("weight", weight)
        return Workload(tuple(Block(part.factors, factor * part.weight) for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Workload:
        """The inverse of :meth:`to_dict`.

        >>> Workload.from_dict(ranges(4).to_dict()) == ranges(4)
        True
        """
        given = validation.fields(values, ("parts",), "workload")
        return cls(tuple(map(Block.from_dict, validation.entries("parts", given["parts"]))))

    def _facts(self) -> Facts:
        lines = [(str(block.shape), f"{block.queries:,}", f"{block.weight:g}") for block in self.parts]
        rows = [("questions", f"{self.queries:,}"), ("cells", f"{self.cells:,}")]
        return Facts("Questions to a table of counts", rows, ("table", "questions", "weight"), lines)


def _kron(matrices: Sequence[Array]) -> Array:
    found: Array = np.ones((1, 1))
    for each in matrices:
        found = np.asarray(np.kron(found, each))
    return found


def _alike(kind: str, sizes: Sequence[int]) -> Workload:
    return Workload((Block(tuple(Factor(kind, size) for size in sizes)),))


def identity(*shape: int) -> Workload:
    """Every cell of the table by itself."""
    return _alike(IDENTITY, shape)


def total(*shape: int) -> Workload:
    """The sum of all cells."""
    return _alike(TOTAL, shape)


def prefixes(cells: int) -> Workload:
    """The sums of the first 1, 2, ..., n cells: a distribution function, or a running total.

    >>> prefixes(4).answers([1, 2, 3, 4]).tolist()
    [1.0, 3.0, 6.0, 10.0]
    """
    return _alike(PREFIXES, [cells])


def ranges(shape: Shape) -> Workload:
    """All sums over consecutive cells, or over all rectangles of a map, and so on.

    >>> ranges(3).answers([1, 10, 100]).tolist(), ranges((512, 512)).queries
    ([1.0, 11.0, 111.0, 10.0, 110.0, 100.0], 17247043584)
    """
    return _alike(RANGES, validation.shape(shape))


def marginals(sizes: Sequence[int], order: int | None = None, sets: Sequence[Sequence[int]] | None = None) -> Workload:
    """Tables of some attributes, summed over all others: all sets of ``order`` attributes, or the listed ``sets``.

    ``sizes``: how many values each attribute has. A set names attributes by their places, from 0 on.

    >>> pairs = marginals([2, 3, 4], order=2)
    >>> len(pairs.parts), pairs.queries
    (3, 26)
    """
    shape = validation.shape(sizes, "sizes")
    if (order is None) == (sets is None):
        raise InvalidInput(f"order={shown(order)} and sets={shown(sets)}: pass one of them.")
    if order is not None:
        order = validation.whole_number("order", order, 0)
        if order > len(shape):
            raise InvalidInput(f"order={order} is more than the {len(shape)} attributes: pass a smaller one.")
        chosen = list(itertools.combinations(range(len(shape)), order))
    else:
        assert sets is not None
        chosen = [_attributes(each, len(shape)) for each in sets]
        if not chosen or len(set(chosen)) < len(chosen):
            raise InvalidInput(f"sets={shown(sets)} are none, or name a set twice: list each set of attributes once.")
    kinds = [[IDENTITY if place in each else TOTAL for place in range(len(shape))] for each in chosen]
    return Workload(tuple(Block(tuple(map(Factor, kind, shape))) for kind in kinds))


def _attributes(given: Sequence[int], attributes: int) -> tuple[int, ...]:
    places = tuple(sorted(validation.whole_number("attribute", place, 0) for place in given))
    if len(set(places)) < len(places) or any(place >= attributes for place in places):
        raise InvalidInput(f"set={shown(given)} of attributes: name different places from 0 to {attributes - 1}.")
    return places


def matrix(rows: ArrayLike) -> Workload:
    """Any linear questions: one row of weights for each, over the cells of a line.

    >>> matrix([[1, 1, 0], [0, 1, -1]]).answers([3, 4, 5]).tolist()
    [7.0, -1.0]
    """
    dense = rows.toarray() if hasattr(rows, "toarray") else rows  # of SciPy's sparse matrices
    frozen = FrozenMatrix(dense, "rows")
    return Workload((Block((Factor(MATRIX, frozen.shape[1], frozen),)),))

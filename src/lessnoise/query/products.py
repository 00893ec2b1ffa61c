"""Mixed moments of several bounded columns, as one measure of a group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.query import columns
from lessnoise.query.base import column_names
from lessnoise.query.grouped import ONE, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lessnoise._common import Array, BoolArray, IntArray

_MOST_NUMBERS = 256


@dataclass(frozen=True)
class Factor:
    """One column: its bounds, and up to which power of it moments are wanted, 1 or 2."""

    column: str
    bounds: tuple[float, float]
    degree: int = 1

    def __post_init__(self) -> None:
        validation.text("column", self.column)
        validation.choice("degree", self.degree, (1, 2))
        checked = Measure("moments", self.column, self.bounds, self.degree).bounds
        settle(self, bounds=checked)

    def polynomials(self, values: Array) -> list[Array]:
        """The Bernstein polynomials C(d, i) t^i (1 - t)^(d - i), i = 0..d, of each value's place t in the bounds.

        >>> [part.tolist() for part in Factor("age", (0, 100), 2).polynomials(np.array([25.0, 200.0]))]
        [[0.5625, 0.0], [0.375, 0.0], [0.0625, 1.0]]
        """
        low, high = self.bounds
        t = np.clip((np.clip(values, low, high) - low) / (high - low), 0.0, 1.0)
        s = 1.0 - t
        return [s, t] if self.degree == 1 else [s * s, 2.0 * t * s, t * t]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"column": self.column, "bounds": list(self.bounds), "degree": self.degree}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Factor:
        """The inverse of :meth:`to_dict`."""
        return cls(**validation.fields(values, ("column", "bounds", "degree"), "factor"))


@dataclass(frozen=True)
class Products(Measure):
    """All products of the Bernstein polynomials of several columns, the ``factors``.

    They are never negative and add up to 1 in each row, so that the number of rows and all mixed moments up to each
    column's degree come from one release whose l1 sensitivity is that of a count. A row without one of the values adds
    nothing. ``degree`` is the sum of the factors' degrees.

    >>> both = Products(factors=(Factor("a", (0, 1)), Factor("b", (0, 1))))
    >>> [steps.tolist() for steps in both.parts({"a": np.array([1.0]), "b": np.array([0.0])}, ("a", "b"))]
    [[0], [0], [1073741824], [0]]
    """

    kind: str = "products"
    factors: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        column_names([factor.column for factor in self.factors])
        settle(self, degree=sum(factor.degree for factor in self.factors))
        if self.width > _MOST_NUMBERS:
            raise InvalidInput(
                f"columns={len(self.factors)} need {self.width} numbers for each group, more than {_MOST_NUMBERS}: ask "
                "for fewer columns at a time, or use lessnoise.PrivateCovariance or PrivateLinearRegression."
            )

    @property
    def width(self) -> int:
        """How many numbers a group has."""
        return math.prod(factor.degree + 1 for factor in self.factors)

    @property
    def excess(self) -> Fraction:
        """By how many steps rounding can take what a row adds beyond ONE: half a step for each number."""
        return Fraction(self.width, 2)

    @property
    def needed(self) -> list[tuple[str, str]]:
        """The columns that it reads, and what each must hold."""
        return [(factor.column, columns.NUMBER) for factor in self.factors]

    def covers(self, wanted: Products) -> bool:
        """Whether all that is read from the other measure can be read from this one: the same with higher degrees."""
        mine, other = ([(one.column, one.bounds) for one in each.factors] for each in (self, wanted))
        return mine == other and all(a.degree >= b.degree for a, b in zip(self.factors, wanted.factors, strict=True))

    def parts(self, batch: Any, names: tuple[str, ...]) -> Iterator[IntArray]:  # noqa: ANN401
        """What each row adds to each number, in steps; one number at a time, to save memory."""
        values = [columns.numbers(batch, factor.column, names) for factor in self.factors]
        missing = np.asarray(np.isnan(values).any(axis=0))
        each = [
            factor.polynomials(np.where(missing, 0.0, column))
            for factor, column in zip(self.factors, values, strict=True)
        ]
        return _products(each, np.ones(len(missing)), missing)

    def numbers(self, sums: Sequence[IntArray]) -> IntArray:
        """The sums of the parts are the numbers; one column for each."""
        return np.stack(list(sums), axis=-1)

    def added(self, batch: Any, names: tuple[str, ...]) -> IntArray:  # noqa: ANN401
        """For each row what it adds, in steps."""
        return self.numbers(list(self.parts(batch, names)))

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows add nothing and what is clipped, in words for a certificate."""
        names = ", ".join(repr(factor.column) for factor in self.factors)
        clipped = (
            f"A value of {factor.column!r} outside {factor.bounds}, infinite ones too, is clipped to them."
            for factor in self.factors
        )
        return (f"A row with NULL or NaN in one of {names} adds nothing to their products.", *clipped)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "factors": [factor.to_dict() for factor in self.factors]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Products:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "factors"), "measure")
        validation.choice("kind", given["kind"], ("products",))
        return cls(factors=tuple(map(Factor.from_dict, validation.entries("factors", given["factors"]))))


def _products(each: Sequence[Sequence[Array]], so_far: Array, missing: BoolArray) -> Iterator[IntArray]:
    """In C order. Every number of a row is rounded by half a step at most; nothing is negative."""
    if not each:
        yield np.where(missing, 0, np.rint(so_far * ONE).astype(np.int64))
        return
    for polynomial in each[0]:
        yield from _products(each[1:], so_far * polynomial, missing)

"""Sums of bounded statistics: several numbers per individual, each between 0 and a public bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Column sums over rows with entries in [0, upper], one row per individual.

    What one individual can change depends on the mechanism's measure: ``upper`` in each statistic, upwards in
    all when added and downwards in all when removed (the sensitivity of
    :func:`~lessnoise.mechanism.families.correlated_gaussian.correlated_gaussian`), or the norms below.
    """

    value: NDArray[np.float64]
    upper: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sums, for a mechanism's ``shape``."""
        return self.value.shape

    def sensitivity(self, neighbours: Neighbours | str) -> float:
        """Largest l2 change by one individual, upper sqrt(d), for the mechanisms that ask for an l2 sensitivity.

        Replacing an individual changes each statistic by at most ``upper`` too, up or down, so the norm is the same
        under both relations; only the directions differ.

        >>> unit_sums([[0, 1, 1, 0]]).sensitivity("add/remove") == unit_sums([[0, 1, 1, 0]]).sensitivity("replace") == 2
        True
        """
        Neighbours.of(neighbours)
        size = len(self.value)
        root = math.sqrt(size)
        if math.isqrt(size) ** 2 != size:
            root = math.nextafter(root, math.inf)  # the square root may have been rounded down
        return self.upper * root

    def l1_sensitivity(self, neighbours: Neighbours | str) -> float:
        """Largest l1 change by one individual, upper d, for the Laplace mechanism."""
        Neighbours.of(neighbours)
        return self.upper * len(self.value)


def unit_sums(rows: ArrayLike, *, upper: float = 1.0, clip: bool = False) -> UnitSums:
    """Sum the columns of an (n, d) array of statistics in [0, upper], one row per individual.

    ``upper`` is public knowledge and must not be read from the rows. Entries outside are refused, or, with
    ``clip=True``, moved to the nearer end.

    >>> unit_sums([[0.0, 1.0], [0.5, 1.0]]).value.tolist()
    [0.5, 2.0]
    >>> unit_sums([[0.0, 7.0], [-3.0, 1.0]], upper=2, clip=True).value.tolist()
    [0.0, 3.0]
    """
    bound = validation.positive("upper", upper)
    table = _table(rows)
    if clip:
        table = np.clip(table, 0.0, bound)
    outside = (table < 0.0) | (table > bound)
    if outside.any():
        row, column = (int(i) for i in np.argwhere(outside)[0])
        raise InvalidInput(
            f"rows[{row}, {column}]={table[row, column]} lies outside [0, upper={bound:g}]: clip the rows first or "
            "pass clip=True."
        )
    value = table.sum(axis=0)
    value.setflags(write=False)
    return UnitSums(value, bound)


def _table(rows: ArrayLike) -> NDArray[np.float64]:
    form = "pass an (n, d) array, one row per individual and one column per statistic."
    result = validation.real_array(rows, "rows", kinds="biuf", form=form, repair="drop or repair such rows first.")
    if result.ndim != 2 or result.shape[1] == 0:
        raise InvalidInput(f"rows.shape={result.shape} is not (n, d): {form}")
    return result

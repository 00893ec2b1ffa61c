"""One mechanism in a comparison on counts, and how often its releases give the raw table away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.guarantees import Verdict
    from lessnoise.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Row:
    """One mechanism at one setting: what is claimed, what is true, and one seeded release, if a map is shown."""

    key: str
    label: str
    mechanism: Mechanism
    verdict: Verdict
    released: NDArray[np.float64] | None

    @property
    def holds(self) -> bool:
        """The claim is proved."""
        return self.verdict.holds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the map."""
        return {
            "key": self.key,
            "label": self.label,
            "mechanism": self.mechanism.to_dict(),
            "verdict": self.verdict.to_dict(),
            "verdict_word": self.verdict.word,
        }


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """How many of some seeded releases, rounded, equal the raw table: all of it, or all its occupied cells."""

    key: str
    label: str
    releases: int
    exact_tables: int
    occupied: int

    @property
    def share(self) -> float:
        """Fraction of releases that give the whole table away."""
        return self.exact_tables / self.releases

    def interval(self, confidence: float = 0.99) -> tuple[float, float]:
        """Clopper and Pearson's interval of the true share."""
        from scipy.stats import binomtest

        found = binomtest(self.exact_tables, self.releases).proportion_ci(confidence, method="exact")
        return float(found.low), float(found.high)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "key": self.key,
            "label": self.label,
            "releases": self.releases,
            "exact_tables": self.exact_tables,
            "exact_occupied_cells": self.occupied,
            "share": self.share,
            "interval_99": list(self.interval()),
        }


def reconstruct(row: Row, valid: NDArray[np.bool_], releases: int, rng: np.random.Generator) -> Reconstruction:
    """Rounding returns every raw count exactly if and only if no cell's noise reaches 1/2."""
    tables = occupied = 0
    for _ in range(releases):
        right = np.abs(row.mechanism.noise(rng)) < 0.5
        tables += bool(right.all())
        occupied += bool(right[valid].all())
    return Reconstruction(row.key, row.label, releases, tables, occupied)

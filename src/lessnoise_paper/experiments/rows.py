"""One mechanism in a comparison on counts, and how often its releases give the raw table away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise_paper.codec import plain_fields, stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.guarantees import Verdict
    from lessnoise.mechanism import Mechanism


@stored(released=None)
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
        return plain_fields(self, verdict_word=self.verdict.word)


@stored(occupied="exact_occupied_cells")
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
        return plain_fields(self, share=self.share, interval_99=self.interval())


def reconstruct(row: Row, valid: NDArray[np.bool_], releases: int, rng: np.random.Generator) -> Reconstruction:
    """Rounding returns every raw count exactly if and only if no cell's noise reaches 1/2."""
    tables = occupied = 0
    for _ in range(releases):
        right = np.abs(row.mechanism.noise(rng)) < 0.5
        tables += bool(right.all())
        occupied += bool(right[valid].all())
    return Reconstruction(row.key, row.label, releases, tables, occupied)

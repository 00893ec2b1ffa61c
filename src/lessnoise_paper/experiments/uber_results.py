"""What the Uber study finds, as plain frozen results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._version import __version__
from lessnoise.query import Answer, Histogram
from lessnoise.report.canvas import MORE_COLOURS
from lessnoise_paper.experiments.rows import Reconstruction, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.guarantees import Guarantee

    Array = NDArray[np.float64]

SYNTHETIC_CITY = "synthetic city"


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of repeated releases, with what theory says of them where it says something.

    ``valid`` counts the occupied cells only, as the paper does; ``whole`` all cells. Kurtosis and skewness are the
    paper's ratios of raw moments, of the loss over all cells.
    """

    valid: Array
    whole: Array
    expected_valid: float | None
    expected_whole: float | None
    kurtosis: float | None
    skewness: float | None

    @property
    def mean_valid(self) -> float:
        """The expected loss over the occupied cells; where none is known, the mean of the repetitions."""
        return float(self.valid.mean()) if self.expected_valid is None else self.expected_valid

    @property
    def observed_kurtosis(self) -> float:
        """E[L^4]/E[L^2]^2 over the repetitions."""
        return _ratio(self.whole, 4)

    @property
    def observed_skewness(self) -> float:
        """E[L^3]/E[L^2]^(3/2) over the repetitions."""
        return _ratio(self.whole, 3)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "mean_valid": float(self.valid.mean()),
            "expected_valid": self.expected_valid,
            "mean_whole": float(self.whole.mean()),
            "expected_whole": self.expected_whole,
            "kurtosis": self.kurtosis,
            "observed_kurtosis": self.observed_kurtosis,
            "skewness": self.skewness,
            "observed_skewness": self.observed_skewness,
            "valid": self.valid.tolist(),
        }


@dataclass(frozen=True, eq=False)
class LossRow(Row):
    """A row with the losses of repeated releases, and the mean that the paper reports."""

    losses: Losses
    paper_mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the map."""
        return {
            **Row.to_dict(self),
            "colour": MORE_COLOURS[self.key],
            "paper_mean_valid": self.paper_mean,
            "losses": self.losses.to_dict(),
            "mean_loss": self.losses.mean_valid,
            "largest_released": None if self.released is None else float(self.released.max()),
        }


@dataclass(frozen=True, eq=False)
class UberResult:
    """The whole study. ``counts`` is the query of the losses, ``city`` the same pickups on the map's box."""

    data: str
    pickups: int
    counts: Answer
    city: Answer
    repetitions: int
    seed: int
    paper: tuple[LossRow, ...]
    strict: tuple[LossRow, ...]
    honest: tuple[LossRow, ...]
    true: tuple[LossRow, ...]
    target: Guarantee
    true_target: Guarantee
    attacks: tuple[Reconstruction, ...]
    facts: dict[str, float] = field(default_factory=dict)
    version: str = __version__

    @property
    def synthetic(self) -> bool:
        """Result-up pickups, which the paper's numbers are not about."""
        return self.data == SYNTHETIC_CITY

    @property
    def occupied(self) -> int:
        """Number of occupied cells, the paper's valid ones."""
        return int((self.counts.value > 0).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the maps."""
        return {
            "lessnoise": self.version,
            "data": self.data,
            "synthetic": self.synthetic,
            "pickups": self.pickups,
            "shape": list(self.counts.shape),
            "bounds": [list(side) for side in box_of(self.counts)],
            "map_bounds": [list(side) for side in box_of(self.city)],
            "occupied_cells": self.occupied,
            "largest_count_on_the_map": float(self.city.value.max()),
            "repetitions": self.repetitions,
            "seed": self.seed,
            "private": False,
            "paper_settings": [row.to_dict() for row in self.paper],
            "all_at_1e-5": [row.to_dict() for row in self.strict],
            "honest_target": self.target.to_dict(),
            "honest": [row.to_dict() for row in self.honest],
            "true_r1smg_target": self.true_target.to_dict(),
            "at_the_true_r1smg_guarantee": [row.to_dict() for row in self.true],
            "reconstruction": [attack.to_dict() for attack in self.attacks],
            "published_r1smg": self.facts,
        }


def box_of(counts: Answer) -> tuple[tuple[float, float], ...]:
    """The bounds of the cells, latitude first."""
    assert isinstance(counts.query, Histogram)
    return tuple(axis.bounds for axis in counts.query.axes if axis.bounds is not None)


def _ratio(losses: Array, order: int) -> float:
    """E[L^order]/E[L^2]^(order/2), scaled first so that nothing overflows."""
    scaled = losses / losses.mean()
    return float(np.mean(scaled**order) / np.mean(scaled**2) ** (order / 2))

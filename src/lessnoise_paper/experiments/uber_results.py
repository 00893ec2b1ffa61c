"""What the Uber study finds, as plain frozen results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._version import __version__
from lessnoise.query import Answer, Histogram
from lessnoise.report.canvas import MORE_COLOURS
from lessnoise_paper.codec import plain_fields, stored
from lessnoise_paper.experiments.rows import Reconstruction, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.guarantees import Guarantee

    Array = NDArray[np.float64]

SYNTHETIC_CITY = "synthetic city"


@stored(whole=None)
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
        return plain_fields(
            self,
            mean_valid=float(self.valid.mean()),
            mean_whole=float(self.whole.mean()),
            observed_kurtosis=self.observed_kurtosis,
            observed_skewness=self.observed_skewness,
        )


@stored(paper_mean="paper_mean_valid")
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
            "mean_loss": self.losses.mean_valid,
            "largest_released": None if self.released is None else float(self.released.max()),
        }


@stored(
    counts=None,
    city=None,
    paper="paper_settings",
    strict="all_at_1e-5",
    true="at_the_true_r1smg_guarantee",
    target="honest_target",
    true_target="true_r1smg_target",
    attacks="reconstruction",
    facts="published_r1smg",
    version="lessnoise",
)
@dataclass(frozen=True, eq=False, kw_only=True)
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
    facts: dict[str, float]
    private: bool = False
    version: str = __version__

    @property
    def synthetic(self) -> bool:
        """Made-up pickups, which the paper's numbers are not about."""
        return self.data == SYNTHETIC_CITY

    @property
    def occupied(self) -> int:
        """Number of occupied cells, the paper's valid ones."""
        return int((self.counts.value > 0).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the maps."""
        return plain_fields(
            self,
            synthetic=self.synthetic,
            shape=self.counts.shape,
            bounds=box_of(self.counts),
            map_bounds=box_of(self.city),
            occupied_cells=self.occupied,
            largest_count_on_the_map=float(self.city.value.max()),
        )


def box_of(counts: Answer) -> tuple[tuple[float, float], ...]:
    """The bounds of the cells, latitude first."""
    assert isinstance(counts.query, Histogram)
    return tuple(axis.bounds for axis in counts.query.axes if axis.bounds is not None)


def _ratio(losses: Array, order: int) -> float:
    """E[L^order]/E[L^2]^(order/2), scaled first so that nothing overflows."""
    scaled = losses / losses.mean()
    return float(np.mean(scaled**order) / np.mean(scaled**2) ** (order / 2))

"""What case study II found: a point for each mechanism and epsilon, and what its pictures need. JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lessnoise import __version__
from lessnoise.guarantees import Bracket  # noqa: TC001 (read at run time)
from lessnoise_paper.codec import plain_fields, read_fields, stored

Array = NDArray[np.float64]

PARTS = {
    "published": "As published: R1SMG has 1e-7 times the epsilon",
    "small": "All mechanisms at 1e-7 times the epsilon",
    "equal-bounds": "Equal exact privacy, entry bounds",
    "equal-clip": "Equal exact privacy, clipped rows",
}


@stored(axis="axis_epsilon", exact="exact_delta", verdict_word="verdict")
@dataclass(frozen=True, eq=False)
class Point:
    """One mechanism at one epsilon of the axis: what it was given, what is true of it, what it is worth.

    ``exact`` brackets delta at the epsilon it was given; None where no curve is known. ``verdict_word`` says whether
    the claim holds, fails or is not proved.
    """

    part: str
    key: str
    label: str
    axis: float
    epsilon: float
    exact: Bracket | None
    verdict_word: str
    deviations: tuple[float, ...]
    accuracies: tuple[float, ...]

    @property
    def deviation(self) -> float:
        """Mean total deviation."""
        return float(np.mean(self.deviations))

    @property
    def accuracy(self) -> float:
        """Mean accuracy on the rows held out."""
        return float(np.mean(self.accuracies))

    @property
    def deviation_spread(self) -> float:
        """Standard deviation of the total deviations over the releases; 0 for one release."""
        return _spread(self.deviations)

    @property
    def accuracy_spread(self) -> float:
        """Standard deviation of the accuracies over the releases; 0 for one release."""
        return _spread(self.accuracies)


def _spread(values: tuple[float, ...]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


@stored(values="spectrum", floor="noise_floor", vectors="components")
@dataclass(frozen=True, eq=False)
class Spectrum:
    """One least-noise release at the largest epsilon: eigenvalues, noise floor, components if they are pictures."""

    values: Array
    floor: float
    vectors: Array | None


@stored(
    version="lessnoise",
    title="data",
    baseline="accuracy_without_noise",
    noisy="released",
    directions="first_components",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class PcaStudy:
    """The points, and what pictures need: spectra and, of tables of pictures, components at the largest epsilon.

    ``components`` is how many the classifier gets, and PPCA samples in ``sweeps`` sweeps.
    """

    version: str = __version__
    title: str
    shape: tuple[int, int]
    delta: float
    components: int
    clip_norm: float
    seed: int
    private: bool = False
    baseline: float
    spectrum: Array
    noisy: dict[str, Spectrum]
    image: tuple[int, int] | None
    directions: Array | None
    sweeps: int
    points: tuple[Point, ...]

    def of(self, part: str) -> dict[str, list[Point]]:
        """The points of one part by mechanism, in the order of epsilon."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            if point.part == part:
                found.setdefault(point.key, []).append(point)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PcaStudy:
        """The inverse of :meth:`to_dict`."""
        return read_fields(cls, values, "study")

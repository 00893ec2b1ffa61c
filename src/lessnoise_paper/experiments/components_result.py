"""What case study II found: a point for each mechanism and epsilon, and what its pictures need. JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._version import __version__
from lessnoise.guarantees import Bracket

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PARTS = {
    "published": "As published; R1SMG at 1e-7 of the epsilon",
    "small": "All at 1e-7 of the epsilon",
    "equal-bounds": "Equal exact privacy, entry bounds",
    "equal-clip": "Equal exact privacy, clipped rows",
}
_VERDICTS = {True: "holds", False: "fails", None: "not proved"}


@dataclass(frozen=True, eq=False)
class Point:
    """One mechanism at one epsilon of the axis: what it was given, what is true of it, what it is worth.

    ``exact`` brackets delta at the epsilon it was given; None where no curve is known.
    """

    part: str
    key: str
    label: str
    axis: float
    epsilon: float
    exact: Bracket | None
    holds: bool | None
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
    def verdict_word(self) -> str:
        """Holds, fails or is not proved."""
        return _VERDICTS[self.holds]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "part": self.part,
            "key": self.key,
            "label": self.label,
            "axis_epsilon": self.axis,
            "epsilon": self.epsilon,
            "exact_delta": None if self.exact is None else self.exact.to_dict(),
            "verdict": self.verdict_word,
            "deviations": list(self.deviations),
            "accuracies": list(self.accuracies),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Point:
        """The inverse of :meth:`to_dict`."""
        exact = values["exact_delta"]
        return cls(
            part=values["part"],
            key=values["key"],
            label=values["label"],
            axis=values["axis_epsilon"],
            epsilon=values["epsilon"],
            exact=None if exact is None else Bracket.from_dict(exact),
            holds={word: holds for holds, word in _VERDICTS.items()}[values["verdict"]],
            deviations=tuple(values["deviations"]),
            accuracies=tuple(values["accuracies"]),
        )


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One least-noise release at the largest epsilon: eigenvalues, first components, and the noise floor."""

    values: Array
    vectors: Array
    floor: float


@dataclass(frozen=True, eq=False)
class PcaStudy:
    """The points, and what pictures need: spectra and first components at the largest epsilon.

    ``measured`` is how many components the total deviation adds up.
    """

    title: str
    shape: tuple[int, int]
    delta: float
    components: int
    measured: int
    clip_norm: float
    seed: int
    baseline: float
    points: tuple[Point, ...]
    spectrum: Array
    noisy: dict[str, Spectrum]
    directions: Array
    image: tuple[int, int] | None
    left_out: tuple[str, ...]
    version: str = __version__

    def of(self, part: str) -> dict[str, list[Point]]:
        """The points of one part by mechanism, in the order of epsilon."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            if point.part == part:
                found.setdefault(point.key, []).append(point)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "lessnoise": self.version,
            "data": self.title,
            "shape": list(self.shape),
            "delta": self.delta,
            "components": self.components,
            "components_measured": self.measured,
            "clip_norm": self.clip_norm,
            "seed": self.seed,
            "private": False,
            "accuracy_without_noise": self.baseline,
            "spectrum": self.spectrum.tolist(),
            "released": {
                part: {
                    "spectrum": found.values.tolist(),
                    "noise_floor": found.floor,
                    "components": None if self.image is None else found.vectors.tolist(),
                }
                for part, found in self.noisy.items()
            },
            "image": None if self.image is None else list(self.image),
            "first_components": None if self.image is None else self.directions.tolist(),
            "left_out": list(self.left_out),
            "points": [point.to_dict() for point in self.points],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PcaStudy:
        """The inverse of :meth:`to_dict`; components are kept only where they are pictures."""
        nothing = np.empty((0, values["shape"][1]))
        return cls(
            title=values["data"],
            shape=(values["shape"][0], values["shape"][1]),
            delta=values["delta"],
            components=values["components"],
            measured=values["components_measured"],
            clip_norm=values["clip_norm"],
            seed=values["seed"],
            baseline=values["accuracy_without_noise"],
            points=tuple(Point.from_dict(point) for point in values["points"]),
            spectrum=np.array(values["spectrum"]),
            noisy={
                part: Spectrum(
                    np.array(found["spectrum"]),
                    nothing if found["components"] is None else np.array(found["components"]),
                    found["noise_floor"],
                )
                for part, found in values["released"].items()
            },
            directions=nothing if values["first_components"] is None else np.array(values["first_components"]),
            image=None if values["image"] is None else (values["image"][0], values["image"][1]),
            left_out=tuple(values["left_out"]),
            version=values["lessnoise"],
        )

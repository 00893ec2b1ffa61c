"""What case study II found: a point for each mechanism and epsilon, and what its pictures need. JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._version import __version__
from lessnoise.errors import InvalidInput
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
        names = (
            "part",
            "key",
            "label",
            "axis_epsilon",
            "epsilon",
            "exact_delta",
            "verdict",
            "deviations",
            "accuracies",
        )
        given = validation.fields(values, names, "point")
        verdicts = {word: holds for holds, word in _VERDICTS.items()}
        validation.choice("verdict", given["verdict"], list(verdicts))
        return cls(
            part=validation.text("part", given["part"]),
            key=validation.text("key", given["key"]),
            label=validation.text("label", given["label"]),
            axis=validation.number("axis_epsilon", given["axis_epsilon"]),
            epsilon=validation.number("epsilon", given["epsilon"]),
            exact=None if given["exact_delta"] is None else Bracket.from_dict(given["exact_delta"]),
            holds=verdicts[given["verdict"]],
            deviations=validation.numbers("deviations", validation.entries("deviations", given["deviations"])),
            accuracies=validation.numbers("accuracies", validation.entries("accuracies", given["accuracies"])),
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
        given = validation.fields(values, _FIELDS, "study", optional=("private",))
        rows, columns = _pair("shape", given["shape"])
        released = validation.fields(given["released"], (), "released", optional=None)
        return cls(
            title=validation.text("data", given["data"]),
            shape=(rows, columns),
            delta=validation.delta_or_zero(given["delta"]),
            components=validation.whole_number("components", given["components"]),
            measured=validation.whole_number("components_measured", given["components_measured"]),
            clip_norm=validation.positive("clip_norm", given["clip_norm"]),
            seed=validation.whole_number("seed", given["seed"], minimum=0),
            baseline=validation.number("accuracy_without_noise", given["accuracy_without_noise"]),
            points=tuple(Point.from_dict(point) for point in validation.entries("points", given["points"])),
            spectrum=np.array(validation.numbers("spectrum", given["spectrum"])),
            noisy={part: _spectrum(part, found, columns) for part, found in released.items()},
            directions=_rows("first_components", given["first_components"], columns),
            image=None if given["image"] is None else _pair("image", given["image"]),
            left_out=tuple(validation.text("left_out", line) for line in given["left_out"] or ()),
            version=validation.text("lessnoise", given["lessnoise"]),
        )


_FIELDS = (
    *("lessnoise", "data", "shape", "delta", "components", "components_measured", "clip_norm", "seed"),
    *("accuracy_without_noise", "spectrum", "released", "image", "first_components", "left_out", "points"),
)


def _pair(name: str, value: object) -> tuple[int, int]:
    sizes = validation.shape(value, name)
    if len(sizes) != 2:
        raise InvalidInput(f"{name}={sizes} is not a pair: pass rows and columns.")
    return sizes[0], sizes[1]


def _spectrum(part: str, values: object, columns: int) -> Spectrum:
    found = validation.fields(values, ("spectrum", "noise_floor", "components"), f"released[{part!r}]")
    return Spectrum(
        np.array(validation.numbers("spectrum", found["spectrum"])),
        _rows("components", found["components"], columns),
        validation.number("noise_floor", found["noise_floor"]),
    )


def _rows(name: str, values: object, columns: int) -> Array:
    """Components where they are pictures, else none."""
    if values is None:
        return np.empty((0, columns))
    rows = [validation.numbers(f"{name}[{place}]", row) for place, row in enumerate(validation.entries(name, values))]
    if any(len(row) != columns for row in rows):
        raise InvalidInput(f"{name} has a row that is not {columns} long: make the study again.")
    return np.array(rows)

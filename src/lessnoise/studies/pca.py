"""Case study II: components of a covariance, as the R1SMG paper compares them, and on equal terms.

Parts, each over the same epsilons on the horizontal axis:

- ``published``: every mechanism as its source says, R1SMG at 10^-7 of the others' epsilon (Ji & Li 2024, section 7.2);
- ``small``: the same, all at 10^-7 of the epsilon (their appendix D);
- ``equal-bounds``: all calibrated on their exact curves to one (epsilon, delta), with the paper's entry bounds;
- ``equal-clip``: the same with rows clipped to a norm, and nothing else changed.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._version import __version__
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import catalogue, families
from lessnoise.mechanism.catalogue import Request
from lessnoise.pca.layout import Layout
from lessnoise.pca.ppca import ppca
from lessnoise.pca.release import build
from lessnoise.pca.rows import RowBound, moments
from lessnoise.pca.symmetric import unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise.data.tables import FeatureTable
    from lessnoise.guarantees import Bracket
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.pca.rows import Moments

    Array = NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
DELTA, COMPONENTS, SMALL = 1e-7, 20, 1e-7
PARTS = {
    "published": "As published; R1SMG at 1e-7 of the epsilon",
    "small": "All at 1e-7 of the epsilon",
    "equal-bounds": "Equal exact privacy, entry bounds",
    "equal-clip": "Equal exact privacy, clipped rows",
}
_PUBLISHED = ("classic-gaussian", "analytic-gaussian", "mvg-published", "mgm", "mod-sulq", "wishart", "ppca")
_EQUAL = ("least-noise", "analytic-gaussian", "l2", "r1smg", "mod-sulq-exact")
_LABELS = {
    "mod-sulq": "MOD-SULQ",
    "mod-sulq-exact": "MOD-SULQ, calibrated exactly",
    "wishart": "Wishart, published",
    "ppca": "PPCA",
}
_PPCA_FEATURES = 200  # beyond, the Gibbs sampler takes hours


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
        return {True: "holds", False: "fails", None: "not proved"}[self.holds]

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


@dataclass(frozen=True, eq=False)
class PcaStudy:
    """The points, and what pictures need: spectra and first components at the largest epsilon."""

    title: str
    shape: tuple[int, int]
    delta: float
    components: int
    clip_norm: float
    seed: int
    baseline: float
    points: tuple[Point, ...]
    spectrum: Array
    noisy: dict[str, tuple[Array, Array, float]]
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
            "clip_norm": self.clip_norm,
            "seed": self.seed,
            "private": False,
            "accuracy_without_noise": self.baseline,
            "spectrum": self.spectrum.tolist(),
            "noise_floors": {part: floor for part, (_, _, floor) in self.noisy.items()},
            "left_out": list(self.left_out),
            "points": [point.to_dict() for point in self.points],
        }


class Bench:
    """The table, split once, and the two measures."""

    def __init__(self, table: FeatureTable, clip: float, components: int, seed: int) -> None:
        self.rows, self.labels, self.components = table.rows, table.labels, components
        order = np.random.default_rng([seed, 60, 40]).permutation(len(table.rows))
        cut = round(0.6 * len(order))  # 60% to train, 40% to test
        self.train, self.test = order[:cut], order[cut:]
        self.covariance = table.rows.T @ table.rows / len(table.rows)
        self.bounded = {part: _rows(part, table, clip) for part in PARTS if part.startswith("equal")}
        self.values: Array = np.linalg.eigh(self.covariance)[0][::-1]

    def deviation(self, vectors: Array) -> float:
        """Sum over i of |lambda_i - v_i^T C v_i|, the components v_i in rows (Ji & Li 2024, section 7.2)."""
        variances = np.einsum("ki,ki->k", vectors @ self.covariance, vectors)
        return float(np.abs(self.values[: len(vectors)] - variances).sum())

    def accuracy(self, vectors: Array) -> float:
        """Of a linear support vector machine on the first components, on the rows held out."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import LinearSVC

        coordinates = self.rows @ vectors[: self.components].T
        machine = make_pipeline(StandardScaler(), LinearSVC(dual=False))
        machine.fit(coordinates[self.train], self.labels[self.train])
        return float(machine.score(coordinates[self.test], self.labels[self.test]))


def eigenvectors(matrix: Array) -> Array:
    """All eigenvectors in rows, the largest eigenvalue first."""
    return np.ascontiguousarray(np.linalg.eigh(matrix)[1].T[::-1])


def run_pca(
    table: FeatureTable,
    *,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = DELTA,
    components: int = COMPONENTS,
    repetitions: int = 5,
    clip_norm: float | None = None,
    sweeps: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> PcaStudy:
    """Run all four parts. The releases are seeded, so they are not private.

    ``clip_norm`` is the norm that rows are clipped to in the last part; ``sweeps`` the length of PPCA's chain.
    """
    axis = [validation.epsilon(epsilon) for epsilon in epsilons]
    delta, repetitions = validation.delta(delta), validation.whole_number("repetitions", repetitions)
    components, seed = validation.whole_number("components", components), validation.whole_number("seed", seed, 0)
    clip = table.clip_norm if clip_norm is None else validation.positive("clip_norm", clip_norm)
    features = table.rows.shape[1]
    if components > features:
        raise InvalidInput(f"components={components} exceeds the {features} features: ask for {features} at most.")
    if not axis:
        raise InvalidInput("epsilons=[] is empty: pass at least one.")
    report = progress or (lambda _label, _done, _total: None)
    bench = Bench(table, clip, components, seed)
    left_out: tuple[str, ...] = ()
    published: tuple[str, ...] = (*_PUBLISHED, "r1smg-published")
    if features > _PPCA_FEATURES:
        published = tuple(key for key in published if key != "ppca")
        left_out = (f"PPCA: its Gibbs sampler takes hours for more than {_PPCA_FEATURES} features.",)
    jobs = [
        (part, key, epsilon)
        for part in PARTS
        for key in (_EQUAL if part.startswith("equal") else published)
        for epsilon in axis
    ]
    points: list[Point] = []
    streams = np.random.SeedSequence(seed).spawn(len(jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the table says it, with numbers
        for done, ((part, key, epsilon), stream) in enumerate(zip(jobs, streams, strict=True)):
            report(f"{PARTS[part]}: {label_of(key)}", done, len(jobs))
            contender = _contender(part, key, epsilon, delta, bench, sweeps)
            points.append(_measure(contender, bench, part, key, epsilon, repetitions, np.random.default_rng(stream)))
        report("pictures", len(jobs), len(jobs))
        noisy = {
            part: _spectrum(*bounded, max(axis), delta, np.random.default_rng([seed, place]))
            for place, (part, bounded) in enumerate(bench.bounded.items())
        }
    exact = eigenvectors(bench.covariance)
    return PcaStudy(
        title=table.title,
        shape=(len(table.rows), features),
        delta=delta,
        components=components,
        clip_norm=clip,
        seed=seed,
        baseline=bench.accuracy(exact),
        points=tuple(points),
        spectrum=bench.values,
        noisy=noisy,
        directions=exact[: min(8, features)],
        image=table.image,
        left_out=left_out,
    )


def label_of(key: str) -> str:
    """What a mechanism is called in tables and pictures."""
    return _LABELS[key] if key in _LABELS else catalogue.find(key).label


@dataclass(frozen=True, eq=False)
class _Contender:
    epsilon: float
    draw: Callable[[np.random.Generator], Array]
    mechanism: Mechanism | None


def _measure(
    contender: _Contender, bench: Bench, part: str, key: str, axis: float, repetitions: int, rng: np.random.Generator
) -> Point:
    drawn = [contender.draw(rng) for _ in range(repetitions)]
    verdict = None if contender.mechanism is None else contender.mechanism.check()
    holds = None if verdict is None else True if verdict.holds else False if verdict.refuted else None
    return Point(
        part=part,
        key=key,
        label=label_of(key),
        axis=axis,
        epsilon=contender.epsilon,
        exact=None if verdict is None else verdict.exact,
        holds=holds,
        deviations=tuple(bench.deviation(vectors) for vectors in drawn),
        accuracies=tuple(bench.accuracy(vectors) for vectors in drawn),
    )


def _contender(part: str, key: str, axis: float, delta: float, bench: Bench, sweeps: int) -> _Contender:
    """How one mechanism draws all its components, in one part."""
    if part in bench.bounded:
        return _equal(*bench.bounded[part], key, axis, delta)
    (count, features), covariance, components = bench.rows.shape, bench.covariance, bench.components
    epsilon = axis * SMALL if part == "small" or key == "r1smg-published" else axis
    norm = math.sqrt(features)  # entries in [-1, 1]
    if key == "ppca":

        def sample(rng: np.random.Generator) -> Array:
            found = ppca(
                covariance * count, components=components, epsilon=epsilon, clip_norm=norm, sweeps=sweeps, rng=rng
            )
            # PPCA says nothing of the other directions: they are completed at random.
            rest = np.linalg.qr(np.vstack([found.value, rng.standard_normal((features - components, features))]).T)[0].T
            return np.vstack([found.value, rest[components:]])

        return _Contender(epsilon, sample, None)
    if key == "wishart":
        described = families.wishart(epsilon=epsilon, features=features, records=count, clip_norm=norm)
        return _additive(epsilon, described, covariance, lambda value: value)
    if key == "mod-sulq":
        described = families.mod_sulq(epsilon=epsilon, delta=delta, features=features, records=count, clip_norm=norm)
        triangle = covariance[np.triu_indices(features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0))
    request = Request(
        epsilon=epsilon,
        delta=delta,
        sensitivity=math.sqrt(2.0) * features / count,  # s_2 = sqrt(2) d/n (Ji & Li 2024, section 7.2)
        shape=(features, features),
        neighbours=Neighbours.REPLACE,
        bound=float(features),
    )
    described = catalogue.find(key).build(request)
    return _additive(epsilon, described, covariance, lambda value: 0.5 * (value + value.T))


def _additive(epsilon: float, described: Mechanism, value: Array, symmetric: Callable[[Array], Array]) -> _Contender:
    return _Contender(epsilon, lambda rng: eigenvectors(symmetric(value + described.noise(rng))), described)


def _equal(layout: Layout, found: Moments, key: str, epsilon: float, delta: float) -> _Contender:
    if key == "mod-sulq-exact":  # the plain triangle, whose largest change is sqrt(2) c^2 too
        described = build("analytic-gaussian", layout, epsilon, delta)
        triangle = found.gram[np.triu_indices(layout.features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0))
    described = build(key, layout, epsilon, delta)
    return _additive(epsilon, described, layout.pack(found), lambda value: layout.unpack(value, found.count).gram)


def _rows(part: str, table: FeatureTable, clip: float) -> tuple[Layout, Moments]:
    """The bounded table of one part; a clip beyond the entry bounds would do nothing but add noise."""
    features = table.rows.shape[1]
    limits: dict[str, Any] = (
        {"bounds": (-1.0, 1.0)} if part == "equal-bounds" else {"clip_norm": min(clip, math.sqrt(features))}
    )
    bound = RowBound.of(features, **limits)
    return Layout(features, bound.norm, Neighbours.REPLACE, center=False), moments(table.rows, bound)


def _spectrum(
    layout: Layout, found: Moments, epsilon: float, delta: float, rng: np.random.Generator
) -> tuple[Array, Array, float]:
    """Eigenvalues of one least-noise release, its first components, and the noise floor."""
    described = build("least-noise", layout, epsilon, delta)
    released = layout.pack(found) + described.noise(rng)
    values, vectors = np.linalg.eigh(layout.unpack(released, found.count).gram / found.count)
    floor = layout.noise_floor(described.standard_deviation, found.count)
    return values[::-1], vectors.T[::-1][:8], floor

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

from lessnoise import Request, validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import catalogue, families
from lessnoise.pca import Layout, RowBound, build_mechanism, moments, ppca, unpack
from lessnoise_paper.data.tables import feature_table
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy, Point, Spectrum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.pca import Moments
    from lessnoise_paper.data.tables import FeatureTable

    Array = NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
DELTA, COMPONENTS, SMALL = 1e-7, 20, 1e-7
REPETITIONS = 5
_PUBLISHED = ("classic-gaussian", "analytic-gaussian", "mvg-published", "mgm", "mod-sulq", "wishart", "ppca")
_EQUAL = ("least-noise", "analytic-gaussian", "l2", "r1smg", "mod-sulq-exact")
_LABELS = {
    "mod-sulq": "MOD-SULQ",
    "mod-sulq-exact": "MOD-SULQ, calibrated exactly",
    "wishart": "Wishart, published",
    "ppca": "PPCA",
}
_PPCA_FEATURES = 200  # beyond, the Gibbs sampler takes hours
WIDE = 1000  # beyond, only the leading components are computed, in single precision
WIDE_EPSILONS, WIDE_REPETITIONS = (0.2, 0.8, 1.6), 2
_SHOWN = 60  # eigenvalues kept of a wide table


class Bench:
    """The table, split once, and the two measures."""

    def __init__(self, table: FeatureTable, clip: float, components: int, seed: int) -> None:
        self.rows, self.labels, self.components = table.rows, table.labels, components
        order = np.random.default_rng([seed, 60, 40]).permutation(len(table.rows))
        cut = round(0.6 * len(order))  # 60% to train, 40% to test
        self.train, self.test = order[:cut], order[cut:]
        self.covariance = table.rows.T @ table.rows / len(table.rows)
        features = table.rows.shape[1]
        self.measured = features if features <= WIDE else components
        self.bounded = {part: _rows(part, table, clip) for part in PARTS if part.startswith("equal")}
        self.values, self.exact = eigenpairs(self.covariance, max(components, _SHOWN))

    def deviation(self, vectors: Array) -> float:
        """Sum over i of |lambda_i - v_i^T C v_i|, the components v_i in rows (Ji & Li 2024, section 7.2)."""
        used = vectors[: self.measured]
        variances = np.einsum("ki,ki->k", used @ self.covariance, used)
        return float(np.abs(self.values[: len(used)] - variances).sum())

    def accuracy(self, vectors: Array) -> float:
        """Of a linear support vector machine on the first components, on the rows held out."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import LinearSVC

        coordinates = self.rows @ vectors[: self.components].T
        machine = make_pipeline(StandardScaler(), LinearSVC(dual=False))
        machine.fit(coordinates[self.train], self.labels[self.train])
        return float(machine.score(coordinates[self.test], self.labels[self.test]))


def eigenpairs(matrix: Array, count: int, *, single: bool = False) -> tuple[Array, Array]:
    """Eigenvalues, falling, and eigenvectors in rows: all, or of a wide matrix the first ``count``."""
    from scipy.linalg import eigh

    size = len(matrix)
    few = [size - min(count, size), size - 1] if size > WIDE else None
    values, vectors = eigh(matrix.astype(np.float32) if single and few else matrix, subset_by_index=few)
    return values[::-1].astype(np.float64), np.ascontiguousarray(vectors.T[::-1], dtype=np.float64)


def digits_study(
    repetitions: int = REPETITIONS,
    epsilons: Sequence[float] = EPSILONS,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The study of scikit-learn's digits, ready for JSON and for the figures of ``pca_pictures``."""
    table = feature_table("digits")
    return run_pca(table, epsilons=epsilons, repetitions=repetitions, seed=seed, progress=progress).to_dict()


def run_pca(
    table: FeatureTable,
    *,
    epsilons: Sequence[float] | None = None,
    delta: float = DELTA,
    components: int = COMPONENTS,
    repetitions: int | None = None,
    clip_norm: float | None = None,
    sweeps: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> PcaStudy:
    """Run all four parts. The releases are seeded, so they are not private.

    ``clip_norm`` is the norm that rows are clipped to in the last part; ``sweeps`` the length of PPCA's chain. Tables
    of over 1,000 features have fewer epsilons and repetitions by default, and the deviation of the first components.
    """
    wide = table.rows.shape[1] > WIDE
    if epsilons is None:
        epsilons = WIDE_EPSILONS if wide else EPSILONS
    if repetitions is None:
        repetitions = WIDE_REPETITIONS if wide else REPETITIONS
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
            part: _spectrum(*bounded, max(axis), delta, components, np.random.default_rng([seed, place]))
            for place, (part, bounded) in enumerate(bench.bounded.items())
        }
    return PcaStudy(
        title=table.title,
        shape=(len(table.rows), features),
        delta=delta,
        components=components,
        measured=bench.measured,
        clip_norm=clip,
        seed=seed,
        baseline=bench.accuracy(bench.exact),
        points=tuple(points),
        spectrum=bench.values,
        noisy=noisy,
        directions=bench.exact[: min(8, features)],
        image=table.image,
        left_out=left_out,
    )


def label_of(key: str) -> str:
    """What a mechanism is called in tables and pictures."""
    return _LABELS[key] if key in _LABELS else catalogue.find_mechanism(key).label


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
        return _equal(*bench.bounded[part], key, axis, delta, bench.measured)
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
        return _additive(epsilon, described, covariance, lambda value: value, bench.measured)
    if key == "mod-sulq":
        described = families.mod_sulq(epsilon=epsilon, delta=delta, features=features, records=count, clip_norm=norm)
        triangle = covariance[np.triu_indices(features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0), bench.measured)
    request = Request(
        epsilon=epsilon,
        delta=delta,
        sensitivity=math.sqrt(2.0) * features / count,  # s_2 = sqrt(2) d/n (Ji & Li 2024, section 7.2)
        shape=(features, features),
        neighbours=Neighbours.REPLACE,
        bound=float(features),
    )
    described = catalogue.find_mechanism(key).build(request)
    return _additive(epsilon, described, covariance, lambda value: 0.5 * (value + value.T), bench.measured)


def _additive(
    epsilon: float, described: Mechanism, value: Array, symmetric: Callable[[Array], Array], count: int
) -> _Contender:
    def draw(rng: np.random.Generator) -> Array:
        return eigenpairs(symmetric(value + described.noise(rng)), count, single=True)[1]

    return _Contender(epsilon, draw, described)


def _equal(layout: Layout, found: Moments, key: str, epsilon: float, delta: float, count: int) -> _Contender:
    if key == "mod-sulq-exact":  # the plain triangle, whose largest change is sqrt(2) c^2 too
        described = build_mechanism("analytic-gaussian", layout, epsilon, delta)
        triangle = found.gram[np.triu_indices(layout.features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0), count)
    described = build_mechanism(key, layout, epsilon, delta)
    packed = layout.pack(found)
    return _additive(epsilon, described, packed, lambda value: layout.unpack(value, found.count).gram, count)


def _rows(part: str, table: FeatureTable, clip: float) -> tuple[Layout, Moments]:
    """The bounded table of one part; a clip beyond the entry bounds would do nothing but add noise."""
    features = table.rows.shape[1]
    limits: dict[str, Any] = (
        {"bounds": (-1.0, 1.0)} if part == "equal-bounds" else {"clip_norm": min(clip, math.sqrt(features))}
    )
    bound = RowBound.of(features, **limits)
    return Layout(features, bound.norm, Neighbours.REPLACE, center=False), moments(table.rows, bound)


def _spectrum(
    layout: Layout, found: Moments, epsilon: float, delta: float, components: int, rng: np.random.Generator
) -> Spectrum:
    described = build_mechanism("least-noise", layout, epsilon, delta)
    released = layout.pack(found) + described.noise(rng)
    values, vectors = eigenpairs(layout.unpack(released, found.count).gram / found.count, max(components, _SHOWN))
    floor = layout.noise_floor(described.standard_deviation, found.count)
    return Spectrum(values, vectors[:8], floor)

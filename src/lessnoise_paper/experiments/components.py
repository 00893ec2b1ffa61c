"""Case study II: components of a covariance, as the R1SMG paper compares them, and on equal terms.

Parts, each over the same epsilons on the horizontal axis:

- ``published``: every mechanism as its source says, R1SMG at 10^-7 of the others' epsilon (Ji & Li 2024, section 7.2);
- ``small``: the same, all at 10^-7 of the epsilon (their appendix D);
- ``equal-bounds``: all calibrated on their exact curves to one (epsilon, delta), with the paper's entry bounds;
- ``equal-clip``: the same with rows clipped to a norm, and nothing else changed.

Every mechanism makes several releases at every epsilon, each from a stream of its own, so that they can be made side by
side: the numbers do not depend on how many are.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import Request, find_mechanism
from lessnoise.pca import Layout, RowBound, build_mechanism, moments, ppca, unpack
from lessnoise_paper.data.tables import feature_table
from lessnoise_paper.experiments.common import cores
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy, Point, Spectrum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise.mechanism import Mechanism
    from lessnoise.pca import Moments
    from lessnoise_paper.data.tables import FeatureTable

    Array = NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
DELTA, COMPONENTS, SMALL = 1e-7, 20, 1e-7
REPETITIONS = 10
_PUBLISHED = ("classic-gaussian", "analytic-gaussian", "mvg-published", "mgm", "mod-sulq", "wishart", "ppca")
_EQUAL = ("least-noise", "analytic-gaussian", "l2", "r1smg", "mod-sulq-exact")
_LABELS = {
    "mod-sulq": "MOD-SULQ",
    "mod-sulq-exact": "MOD-SULQ, calibrated exactly",
    "wishart": "Wishart, published",
    "ppca": "PPCA",
}
SWEEPS = 20
"""How long PPCA's chain runs for each release."""

WIDE = 1000  # features; beyond, releases are decomposed in single precision, and the axis has its two ends alone
WIDE_EPSILONS = (0.2, 1.6)
_SHOWN = 60  # eigenvalues kept of a release
_LARGEST_CREW = 8  # releases made at a time: each takes memory


class Bench:
    """The table, split once, and the two measures."""

    def __init__(self, table: FeatureTable, clip: float, components: int, seed: int) -> None:
        self.rows, self.labels, self.components = table.rows, table.labels, components
        order = np.random.default_rng([seed, 60, 40]).permutation(len(table.rows))
        cut = round(0.6 * len(order))  # 60% to train, 40% to test
        self.train, self.test = order[:cut], order[cut:]
        self.covariance = table.rows.T @ table.rows / len(table.rows)
        self.single = table.rows.shape[1] > WIDE
        self.bounded = {part: _rows(part, table, clip) for part in PARTS if part.startswith("equal")}
        self.values, self.exact = eigenpairs(self.covariance)

    def deviation(self, vectors: Array) -> float:
        """Sum over all i of |lambda_i - v_i^T C v_i|, the components v_i in rows (Ji & Li 2024, section 7.2)."""
        covariance = self.covariance.astype(vectors.dtype, copy=False)
        variances = np.einsum("ki,ki->k", vectors @ covariance, vectors)
        return float(np.abs(self.values - variances).sum())

    def accuracy(self, vectors: Array) -> float:
        """Of a linear support vector machine on the first components, on the rows held out.

        As in the paper, the coordinates are not scaled.
        """
        from sklearn.svm import LinearSVC

        coordinates = self.rows @ vectors[: self.components].T.astype(np.float64)
        machine = LinearSVC(dual=False)
        machine.fit(coordinates[self.train], self.labels[self.train])
        return float(machine.score(coordinates[self.test], self.labels[self.test]))


def eigenpairs(matrix: Array, *, single: bool = False) -> tuple[Array, Array]:
    """Eigenvalues, falling, and eigenvectors in rows; in single precision if asked for."""
    values, vectors = np.linalg.eigh(matrix.astype(np.float32) if single else matrix)
    return values[::-1].astype(np.float64), np.ascontiguousarray(vectors.T[::-1])


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
    sweeps: int = SWEEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> PcaStudy:
    """Run all four parts. The releases are seeded, so they are not private.

    ``clip_norm`` is the norm that rows are clipped to in the last part; ``sweeps`` the length of PPCA's chain. Tables
    of over 1,000 features have two epsilons by default. The deviation is that of all components.
    """
    if epsilons is None:
        epsilons = WIDE_EPSILONS if table.rows.shape[1] > WIDE else EPSILONS
    repetitions = REPETITIONS if repetitions is None else repetitions
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
    report("covariance", 0, 1)
    bench = Bench(table, clip, components, seed)
    jobs = [
        (part, key, epsilon)
        for part in PARTS
        for key in (_EQUAL if part.startswith("equal") else (*_PUBLISHED, "r1smg-published"))
        for epsilon in axis
    ]
    streams = np.random.SeedSequence(seed).spawn(len(jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the table says it, with numbers
        contenders = [_contender(part, key, epsilon, delta, bench, sweeps) for part, key, epsilon in jobs]
        tasks = [
            (contender, np.random.default_rng(stream))
            for contender, own in zip(contenders, streams, strict=True)
            for stream in own.spawn(repetitions)
        ]
        names = [f"{PARTS[part]}: {label_of(key)}" for part, key, _ in jobs for _ in range(repetitions)]
        measured = _measure_all(tasks, bench, lambda done: report(names[done], done, len(tasks)))
        points = tuple(
            _point(*job, contender, measured[place * repetitions : (place + 1) * repetitions])
            for place, (job, contender) in enumerate(zip(jobs, contenders, strict=True))
        )
        report("pictures", len(tasks), len(tasks))
        noisy = {
            part: _spectrum(*bounded, max(axis), delta, np.random.default_rng([seed, place]), table.image)
            for place, (part, bounded) in enumerate(bench.bounded.items())
        }
    return PcaStudy(
        title=table.title,
        shape=(len(table.rows), features),
        delta=delta,
        components=components,
        clip_norm=clip,
        seed=seed,
        baseline=bench.accuracy(bench.exact),
        points=points,
        spectrum=bench.values,
        noisy=noisy,
        directions=bench.exact[: min(8, features)] if table.image else None,
        image=table.image,
        sweeps=sweeps,
    )


def label_of(key: str) -> str:
    """What a mechanism is called in tables and pictures."""
    return _LABELS[key] if key in _LABELS else find_mechanism(key).label


@dataclass(frozen=True, eq=False)
class _Contender:
    epsilon: float
    draw: Callable[[np.random.Generator], Array]
    mechanism: Mechanism | None


def _measure_all(
    tasks: Sequence[tuple[_Contender, np.random.Generator]], bench: Bench, report: Callable[[int], None]
) -> list[tuple[float, float]]:
    """Deviation and accuracy of every release, some at a time: linear algebra lets other threads run."""
    from threadpoolctl import threadpool_limits

    def measure(contender: _Contender, rng: np.random.Generator) -> tuple[float, float]:
        vectors = contender.draw(rng)
        return bench.deviation(vectors), bench.accuracy(vectors)

    found = []
    with threadpool_limits(1):  # a thread for each release, not several for one
        crew = ThreadPoolExecutor(min(cores(), _LARGEST_CREW))
        try:
            for done, result in enumerate(crew.map(measure, *zip(*tasks, strict=True))):
                report(done)
                found.append(result)
        finally:
            crew.shutdown(cancel_futures=True)
    return found


def _point(part: str, key: str, axis: float, contender: _Contender, measured: list[tuple[float, float]]) -> Point:
    verdict = None if contender.mechanism is None else contender.mechanism.check()
    deviations, accuracies = zip(*measured, strict=True)
    return Point(
        part=part,
        key=key,
        label=label_of(key),
        axis=axis,
        epsilon=contender.epsilon,
        exact=None if verdict is None else verdict.exact,
        verdict_word="not proved" if verdict is None else verdict.word,
        deviations=deviations,
        accuracies=accuracies,
    )


def _contender(part: str, key: str, axis: float, delta: float, bench: Bench, sweeps: int) -> _Contender:
    """How one mechanism draws all its components, in one part."""
    if part in bench.bounded:
        return _equal(*bench.bounded[part], key, axis, delta, bench.single)
    (count, features), covariance, components = bench.rows.shape, bench.covariance, bench.components
    epsilon = axis * SMALL if part == "small" or key == "r1smg-published" else axis
    norm = math.sqrt(features)  # entries in [-1, 1]
    if key == "ppca":
        # In the coordinates of the eigenvectors the law is the same, and the matrix diagonal.
        turned = np.diag(bench.values * count)

        def sample(rng: np.random.Generator) -> Array:
            found = ppca(turned, components=components, epsilon=epsilon, clip_norm=norm, sweeps=sweeps, rng=rng)
            first = (found.value @ bench.exact).astype(np.float32 if bench.single else np.float64)
            # PPCA says nothing of the other directions: they are completed at random.
            others = rng.standard_normal((features - components, features)).astype(first.dtype)
            return np.vstack([first, np.linalg.qr(np.vstack([first, others]).T)[0].T[components:]])

        return _Contender(epsilon, sample, None)
    if key == "wishart":
        described = mechanisms.wishart(epsilon=epsilon, features=features, records=count, clip_norm=norm)
        return _additive(epsilon, described, covariance, lambda value: value, bench.single)
    if key == "mod-sulq":
        described = mechanisms.mod_sulq(epsilon=epsilon, delta=delta, features=features, records=count, clip_norm=norm)
        triangle = covariance[np.triu_indices(features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0), bench.single)
    request = Request(
        epsilon=epsilon,
        delta=delta,
        sensitivity=math.sqrt(2.0) * features / count,  # s_2 = sqrt(2) d/n (Ji & Li 2024, section 7.2)
        shape=(features, features),
        neighbours=Neighbours.REPLACE,
        bound=float(features),
    )
    described = find_mechanism(key).build(request)
    return _additive(epsilon, described, covariance, lambda value: 0.5 * (value + value.T), bench.single)


def _additive(
    epsilon: float, described: Mechanism, value: Array, symmetric: Callable[[Array], Array], single: bool
) -> _Contender:
    def draw(rng: np.random.Generator) -> Array:
        return eigenpairs(symmetric(value + described.noise(rng)), single=single)[1]

    return _Contender(epsilon, draw, described)


def _equal(layout: Layout, found: Moments, key: str, epsilon: float, delta: float, single: bool) -> _Contender:
    if key == "mod-sulq-exact":  # the plain triangle, whose largest change is sqrt(2) c^2 too
        described = build_mechanism("analytic-gaussian", layout, epsilon, delta)
        triangle = found.gram[np.triu_indices(layout.features)]
        return _additive(epsilon, described, triangle, lambda value: unpack(value, weight=1.0), single)
    described = build_mechanism(key, layout, epsilon, delta)
    packed = layout.pack(found)
    return _additive(epsilon, described, packed, lambda value: layout.unpack(value, found.count).gram, single)


def _rows(part: str, table: FeatureTable, clip: float) -> tuple[Layout, Moments]:
    """The bounded table of one part; a clip beyond the entry bounds would do nothing but add noise."""
    features = table.rows.shape[1]
    limits: dict[str, Any] = (
        {"bounds": (-1.0, 1.0)} if part == "equal-bounds" else {"clip_norm": min(clip, math.sqrt(features))}
    )
    bound = RowBound.of(features, **limits)
    return Layout(features, bound.norm, Neighbours.REPLACE, center=False), moments(table.rows, bound)


def _spectrum(
    layout: Layout,
    found: Moments,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    image: object,
) -> Spectrum:
    described = build_mechanism("least-noise", layout, epsilon, delta)
    released = layout.pack(found) + described.noise(rng)
    values, vectors = eigenpairs(layout.unpack(released, found.count).gram / found.count, single=layout.features > WIDE)
    floor = layout.noise_floor(described.standard_deviation, found.count)
    return Spectrum(values[:_SHOWN], floor, vectors[:8] if image else None)

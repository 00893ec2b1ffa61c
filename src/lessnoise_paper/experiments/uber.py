"""Case study I of Ji & Li 2024: pickup counts of New York City, as published and on equal terms.

Three parts. The paper's settings: R1SMG at epsilon = 1e-5, the others at 0.5, then all at 1e-5 (its appendix D). The
comparison on equal terms: every mechanism at the same *exact* (epsilon, delta). The reconstruction: how often rounding
one published R1SMG release returns the raw table.

There are two grids of 89 x 89 cells, since the paper does not say which part of the world it divides, and no window
that we tried gives both its mean losses and the largest count on its maps (:mod:`lessnoise_paper.experiments.windows`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import __version__, validation
from lessnoise.errors import ClaimWarning
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.mechanism import Dawa, Request, find_mechanism
from lessnoise.query import Answer, Histogram
from lessnoise.report import MORE_COLOURS
from lessnoise_paper.codec import plain_fields, stored
from lessnoise_paper.data import BOUNDS, synthetic_city, uber_pickups
from lessnoise_paper.data.uber import FIGURE_BOUNDS, WINDOW, WINDOW_BOUNDS, WINDOW_ROWS
from lessnoise_paper.experiments.rows import Reconstruction, Row, reconstruct
from lessnoise_paper.experiments.windows import Windows, try_windows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.mechanism import Mechanism

    Array = NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

SYNTHETIC = "synthetic"
EPSILON, STRICT_EPSILON, DELTA = 0.5, 1e-5, 1e-7
PUBLISHED = "r1smg-published"
ATTACKED = (PUBLISHED, "analytic-gaussian")

# What the paper says of the mean loss over the valid cells (section 7, "Utility boosting and stability").
PAPER_MEANS = {PUBLISHED: 1.5e4, "classic-gaussian": 5e4, "analytic-gaussian": 5e4, "mvg-published": 5e4}

# As the paper ran them: H_b and DAWA by their authors' code, which protects one record added or removed.
_PAPER = (PUBLISHED, "classic-gaussian", "analytic-gaussian", "mvg-published", "mgm", "dawa-dpcomp", "hb")
_HONEST = (
    "least-noise",
    "analytic-gaussian",
    "l2",
    "discrete-gaussian",
    "laplace",
    "hb",
    "hb-gaussian",
    "dawa",
    "mvg",
    "r1smg",
)
_TRUE = ("least-noise", "analytic-gaussian", "l2", "discrete-gaussian", "r1smg")
_OWN_RELATION = {"dawa-dpcomp": Neighbours.ADD_REMOVE, "hb": Neighbours.ADD_REMOVE}
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
    """The whole study. ``counts`` is the grid of the losses, ``city`` that of the maps.

    ``windows`` says what other windows would give; None for made-up pickups, which have one grid for both.
    """

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
    windows: Windows | None
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
            largest_count=int(self.counts.value.max()),
            map_occupied_cells=int((self.city.value > 0).sum()),
            largest_count_on_the_map=int(self.city.value.max()),
            pickups_on_the_map=int(self.city.value.sum()),
            expected_loss_on_the_map={row.key: self._expected_on_the_map(row) for row in self.paper},
        )

    def _expected_on_the_map(self, row: LossRow) -> float | None:
        """What a row's expected loss would be if it were taken over the occupied cells of the maps."""
        whole = row.losses.expected_whole
        return None if whole is None else whole * float((self.city.value > 0).mean())


def box_of(counts: Answer) -> tuple[tuple[float, float], ...]:
    """The bounds of the cells, latitude first."""
    assert isinstance(counts.query, Histogram)
    return tuple(axis.bounds for axis in counts.query.axes if axis.bounds is not None)


def _ratio(losses: Array, order: int) -> float:
    """E[L^order]/E[L^2]^(order/2), scaled first so that nothing overflows."""
    scaled = losses / losses.mean()
    return float(np.mean(scaled**order) / np.mean(scaled**2) ** (order / 2))


# The study.


def run_uber(
    data: str | os.PathLike[str] | None = None,
    *,
    repetitions: int = 100,
    attack_releases: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> UberResult:
    """Run the study on the pickups in the folder ``data``, or on the synthetic city if it is "synthetic".

    The releases are seeded, so they are not private; the pickups are public. ``progress(label, done, total)`` is
    called before each step and at the end.
    """
    repetitions = validation.whole_number("repetitions", repetitions, minimum=2)
    attack_releases = validation.whole_number("attack_releases", attack_releases)
    seed = validation.whole_number("seed", seed, minimum=0)
    name, points, box, map_box = _points(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the tables say it, with numbers
        counts, city = cell_counts(points, box), cell_counts(points, map_box)
        windows = None if name == SYNTHETIC_CITY else try_windows(points)
        return _Study(counts, city, repetitions, seed, progress).run(name, len(points), attack_releases, windows)


def cell_counts(points: Array, bounds: Any) -> Answer:  # noqa: ANN401
    """The true counts on 89 x 89 cells, for one pickup replaced."""
    query = Histogram.grid(["latitude", "longitude"], bins=(89, 89), bounds=bounds)
    return query.answer(points, neighbours=Neighbours.REPLACE)


def _points(data: str | os.PathLike[str] | None) -> tuple[str, Array, Any, Any]:
    if data is not None and str(data) == SYNTHETIC:
        return SYNTHETIC_CITY, synthetic_city(pickups=WINDOW_ROWS), BOUNDS, BOUNDS
    return f"Uber pickups in New York City, {WINDOW}", uber_pickups(data), WINDOW_BOUNDS, FIGURE_BOUNDS


class _Study:
    """The steps, each with a random stream of its own, so that none depends on what ran before."""

    def __init__(self, counts: Answer, city: Answer, repetitions: int, seed: int, progress: Progress | None) -> None:
        self.counts, self.city, self.repetitions, self.seed = counts, city, repetitions, seed
        self.valid = counts.value > 0
        self.progress = progress
        self.total = 2 * len(_PAPER) + len(_HONEST) + len(_TRUE) + len(ATTACKED)
        self.done = 0

    def run(self, name: str, pickups: int, attack_releases: int, windows: Windows | None) -> UberResult:
        relation = Neighbours.REPLACE
        target = Guarantee(EPSILON, DELTA, relation)
        paper = [
            self._row(
                key,
                STRICT_EPSILON if key == PUBLISHED else EPSILON,
                DELTA,
                "paper",
                None if name == SYNTHETIC_CITY else PAPER_MEANS.get(key),
            )
            for key in _PAPER
        ]
        strict = [self._row(key, STRICT_EPSILON, DELTA, "strict") for key in _PAPER]
        honest = [self._row(key, EPSILON, DELTA, "honest") for key in _HONEST]
        published = paper[0].mechanism
        true_target = Guarantee(STRICT_EPSILON, published.delta(STRICT_EPSILON).upper, relation)
        true = [self._row(key, STRICT_EPSILON, true_target.delta, "true", with_map=False) for key in _TRUE]
        by_key = {row.key: row for row in paper}
        attacks = [self._attack(by_key[key], attack_releases) for key in ATTACKED]
        facts = {
            "sigma_star": published.expected_loss,
            "delta_at_1e-5": published.delta(STRICT_EPSILON).lower,
            "delta_at_0.5": published.delta(EPSILON).lower,
            "epsilon_at_1e-7": published.epsilon(DELTA).lower,
        }
        self._step("done")
        return UberResult(
            data=name,
            pickups=pickups,
            counts=self.counts,
            city=self.city,
            repetitions=self.repetitions,
            seed=self.seed,
            paper=tuple(paper),
            strict=tuple(strict),
            honest=tuple(sorted(honest, key=lambda row: row.losses.mean_valid)),
            true=tuple(sorted(true, key=lambda row: row.losses.mean_valid)),
            target=target,
            true_target=true_target,
            attacks=tuple(attacks),
            facts=facts,
            windows=windows,
        )

    def _row(
        self,
        key: str,
        epsilon: float,
        delta: float,
        part: str,
        paper_mean: float | None = None,
        with_map: bool = True,
    ) -> LossRow:
        entry = find_mechanism(key)
        self._step(f"{entry.label}, epsilon = {epsilon:g}")
        published = part in ("paper", "strict")
        relation = _OWN_RELATION.get(key, Neighbours.REPLACE) if published else Neighbours.REPLACE
        mechanism = entry.build(self._request(epsilon, delta, relation, published))
        rng = self._rng(part, key)
        released = None
        if with_map:
            released = np.where(self.city.value > 0, mechanism.release(self.city.value, rng).value, 0.0)
            released.setflags(write=False)
        losses = self._losses(mechanism, rng)
        return LossRow(key, entry.label, mechanism, mechanism.check(), released, losses, paper_mean)

    def _request(self, epsilon: float, delta: float, relation: Neighbours, published: bool) -> Request:
        """As published, by the norms that the paper states; else for counts of which one row is moved."""
        query, bound = self.counts.query, float(WINDOW_ROWS)  # all pickups in one cell
        if not published:
            return query.request(epsilon, delta, relation, bound=bound)
        return Request(
            epsilon=epsilon,
            delta=delta,
            sensitivity=query.sensitivity(relation),
            shape=self.counts.shape,
            neighbours=relation,
            l1_sensitivity=query.l1_sensitivity(relation),
            bound=bound,
            integer=True,
            counts=True,
            moved=relation is Neighbours.REPLACE,
        )

    def _losses(self, mechanism: Mechanism, rng: np.random.Generator) -> Losses:
        valid, whole = [], []
        for _ in range(self.repetitions):
            if isinstance(mechanism.law, Dawa):
                error = mechanism.release(self.counts.value, rng).value - self.counts.value
            else:
                error = mechanism.noise(rng).astype(np.float64)
            squares = error**2
            valid.append(float(squares[self.valid].sum()))
            whole.append(float(squares.sum()))
        expected = None if isinstance(mechanism.law, Dawa) else mechanism.expected_loss
        shaped = expected is not None and not mechanism.name.startswith("hb")
        return Losses(
            valid=np.array(valid),
            whole=np.array(whole),
            # Every cell's noise has the same variance in all of these mechanisms.
            expected_valid=None if expected is None else expected * float(self.valid.mean()),
            expected_whole=expected,
            kurtosis=mechanism.loss_kurtosis if shaped else None,
            skewness=mechanism.loss_skewness if shaped else None,
        )

    def _attack(self, row: LossRow, releases: int) -> Reconstruction:
        self._step(f"rounding {releases:,} releases of {row.label}")
        return reconstruct(row, self.valid, releases, self._rng("attack", row.key))

    def _rng(self, *words: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *(byte for word in words for byte in word.encode())])

    def _step(self, label: str) -> None:
        if self.progress is not None:
            self.progress(label, self.done, self.total)
        self.done += 1

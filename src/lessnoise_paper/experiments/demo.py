"""The demonstration: every mechanism on one synthetic city, at one exact (epsilon, delta)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import __version__, text, validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.mechanism import find_mechanism
from lessnoise.query import Answer, Histogram
from lessnoise.report import COLOURS, FrontierPoint, frontier, frontier_svg
from lessnoise_paper.codec import plain_fields, stored
from lessnoise_paper.data import BOUNDS, synthetic_city
from lessnoise_paper.experiments import demo_pictures as pictures
from lessnoise_paper.experiments.rows import Reconstruction, Row, reconstruct
from lessnoise_paper.model import Experiment, Result, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise.guarantees import Bracket
    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers

    Progress = Callable[[str, int, int], None]

PAPER_EPSILON, PAPER_DELTA = 1e-5, 1e-7
"""The setting of the R1SMG paper's own 89 x 89 count query (Ji & Li 2024, case study I)."""

QUERY = Histogram.grid(["latitude", "longitude"], bins=(89, 89), bounds=BOUNDS)
"""The count query of the demonstration."""

QUANTILES = (0.05, 0.5, 0.95)
RECONSTRUCTION_RELEASES = 1000
CONTROL = "least-noise"

# MVG and MGM, exactly calibrated, are the analytic Gaussian here, and stand for it.
_COMPARED = (
    "analytic-gaussian",
    "l2",
    "zhao-gaussian-1",
    "zhao-gaussian-2",
    "classic-gaussian",
    "laplace",
    "discrete-gaussian",
    "r1smg",
    "product-noise",
)
_PUBLISHED, _INTEGERS = "r1smg-published", "geometric"

_LARGEST_DELTA = 0.5  # beyond it Zhao's second closed form does not exist
DIMENSIONS = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
_CURVE_POINTS = 28
_CURVE_FLOOR = 1e-12


@stored(released=None, target_delta="exact_delta_at_target_epsilon", loss_quantiles=None)
@dataclass(frozen=True, eq=False)
class DemoRow(Row):
    """A row with what the mechanism costs, in theory and in the one release.

    ``curve`` holds (epsilon, upper end of the exact delta) for pictures; it ends where delta is negligible.
    """

    released: NDArray[np.float64]
    target_delta: Bracket
    loss_quantiles: tuple[float, float, float]
    observed_loss: float
    curve: tuple[tuple[float, float], ...]

    @property
    def standard_deviation(self) -> float:
        """Root mean square noise of one cell."""
        return self.mechanism.standard_deviation

    @property
    def expected_loss(self) -> float:
        """E||n||^2 over all cells."""
        return self.mechanism.expected_loss

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the map."""
        return {
            **Row.to_dict(self),
            "colour": COLOURS[self.key],
            "standard_deviation": self.standard_deviation,
            "expected_loss": self.expected_loss,
            "loss_quantiles": dict(zip(map(str, QUANTILES), self.loss_quantiles, strict=True)),
        }


@stored(counts=None, version="lessnoise")
@dataclass(frozen=True, eq=False)
class DemoResult:
    """The comparison. ``rows`` holds the mechanisms that keep their claim first, each part by expected loss."""

    target: Guarantee
    seed: int
    counts: Answer
    rows: tuple[DemoRow, ...]
    reconstructions: tuple[Reconstruction, ...]
    frontier: tuple[FrontierPoint, ...]
    private: bool = False
    version: str = __version__

    def row(self, key: str) -> DemoRow:
        """The row of one mechanism."""
        validation.choice("key", key, [row.key for row in self.rows])
        return next(row for row in self.rows if row.key == key)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the maps."""
        return plain_fields(
            self,
            data="synthetic city",
            pickups=int(self.counts.value.sum()),
            largest_count=float(self.counts.value.max()),
            shape=self.counts.shape,
            sensitivity=self.counts.sensitivity,
            l1_sensitivity=self.counts.l1_sensitivity,
            bounds=BOUNDS,
        )


def run_demo(
    epsilon: float = 0.5,
    delta: float = 1e-7,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    dimensions: Sequence[int] = DIMENSIONS,
    attacked: int = RECONSTRUCTION_RELEASES,
) -> DemoResult:
    """Compare every mechanism on the synthetic city's counts, for neighbours that replace one pickup.

    ``dimensions`` are the other numbers of entries at which the least noise is compared with the Gaussian's.
    ``attacked`` is the number of releases of each examined mechanism that are rounded to read the raw table back; with
    0 no mechanism is examined.
    ``progress(label, done, total)`` is called before each step and once at the end. The releases are
    seeded, so they are not private; the data are synthetic.
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    seed = validation.whole_number("seed", seed, minimum=0)
    attacked = validation.whole_number("attacked", attacked, minimum=0)
    if delta > _LARGEST_DELTA:
        raise InvalidInput(f"delta={delta} exceeds {_LARGEST_DELTA}: pass a small probability, such as 1e-7.")
    target = Guarantee(epsilon, delta, Neighbours.REPLACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the table says it, with numbers
        return _compare(target, seed, progress or (lambda _label, _done, _total: None), dimensions, attacked)


def _compare(target: Guarantee, seed: int, progress: Progress, dimensions: Sequence[int], attacked: int) -> DemoResult:
    contenders = _contenders(target)
    steps = len(contenders) + 3
    progress("synthetic city", 0, steps)
    counts = QUERY.answer(synthetic_city(), neighbours=target.neighbours)
    release_seeds, reconstruction_seeds = np.random.SeedSequence(seed).spawn(2)
    rows = []
    for done, ((key, (label, build)), child) in enumerate(
        zip(contenders.items(), release_seeds.spawn(len(contenders)), strict=True), start=1
    ):
        progress(label, done, steps)
        rows.append(_row(key, label, build(counts), counts, target, np.random.default_rng(child)))
    rows.sort(key=lambda row: (not row.holds, row.expected_loss, row.key != CONTROL))
    progress("reconstruction", steps - 2, steps)
    examined = [row for row in rows if row.verdict.refuted or row.key == CONTROL] if attacked else []
    occupied = counts.value > 0
    reconstructions = tuple(
        reconstruct(row, occupied, attacked, np.random.default_rng(child))
        for row, child in zip(examined, reconstruction_seeds.spawn(len(examined)), strict=True)
    )
    progress("other dimensions", steps - 1, steps)
    points = (
        frontier(delta=target.delta, epsilons=[target.epsilon], dimensions=dimensions, bounds=False, radial=False)
        if dimensions
        else []
    )
    progress("done", steps, steps)
    return DemoResult(target, seed, counts, tuple(rows), reconstructions, tuple(points))


def _contenders(target: Guarantee) -> dict[str, tuple[str, Callable[[Answer], Mechanism]]]:
    """Key, label and builder of every mechanism, in a fixed order, so that each keeps its random stream.

    Each is asked for counts of which one row is moved: the least noise is the least for them, not for an l2 ball.
    """

    def builder(name: str, guarantee: Guarantee) -> Callable[[Answer], Mechanism]:
        return lambda counts: find_mechanism(name).build(counts.request(guarantee.epsilon, guarantee.delta))

    found = {name: (find_mechanism(name).label, builder(name, target)) for name in _COMPARED}
    paper = Guarantee(PAPER_EPSILON, PAPER_DELTA, target.neighbours)
    for key, guarantee in ((_PUBLISHED, target), (f"{_PUBLISHED}-paper", paper)):
        if key == _PUBLISHED or guarantee != target:
            found[key] = (
                f"{find_mechanism(_PUBLISHED).label}, at {text.pair(guarantee)}",
                builder(_PUBLISHED, guarantee),
            )
    found[CONTROL] = (f"{find_mechanism(CONTROL).label} for counts", builder(CONTROL, target))
    found[_INTEGERS] = (find_mechanism(_INTEGERS).label, builder(_INTEGERS, target))
    return found


def _row(
    key: str, label: str, mechanism: Mechanism, counts: Answer, target: Guarantee, rng: np.random.Generator
) -> DemoRow:
    released = mechanism.release(counts.value, rng).value.astype(np.float64)
    released.setflags(write=False)
    low, middle, high = (mechanism.loss_quantile(q) for q in QUANTILES)
    return DemoRow(
        key=key,
        label=label,
        mechanism=mechanism,
        verdict=mechanism.check(),
        target_delta=mechanism.delta(target.epsilon),
        loss_quantiles=(low, middle, high),
        observed_loss=float(np.sum((released - counts.value) ** 2)),
        released=released,
        curve=_curve(mechanism, target.epsilon),
    )


def _curve(mechanism: Mechanism, epsilon: float) -> tuple[tuple[float, float], ...]:
    """The exact curve from well below both settings to well above the target, denser where it falls fast."""
    low, high = 0.1 * min(epsilon, PAPER_EPSILON), 4.0 * max(epsilon, PAPER_EPSILON)
    grid = sorted({*np.geomspace(low, high, _CURVE_POINTS).tolist(), epsilon})
    points: list[tuple[float, float]] = []
    for at in grid:
        upper = mechanism.delta(at).upper
        if points:
            points += _between(mechanism, points[-1], (at, upper))
        points.append((at, upper))
        if upper < _CURVE_FLOOR:
            break
    return tuple(points)


def _between(mechanism: Mechanism, left: tuple[float, float], right: tuple[float, float]) -> list[tuple[float, float]]:
    """Halve an interval, in ln(epsilon), where the curve bends or falls too fast for a straight line."""
    ratio, kept = right[0] / left[0], right[1] / left[1] if left[1] > _CURVE_FLOOR else 1.0
    if kept > 0.85 or ratio < 1.01 or (kept > 0.4 and ratio < 1.1):
        return []
    at = math.sqrt(left[0] * right[0])
    middle = (at, mechanism.delta(at).upper)
    return [*_between(mechanism, left, middle), middle, *_between(mechanism, middle, right)]


# The experiment.


OWN_PAGE: dict[str, Any] = {"dimensions": list(DIMENSIONS), "attacked": RECONSTRUCTION_RELEASES, "maps": True}
"""What the page of the demonstration shows and the report does not: other dimensions, attacks, maps and the spread."""


def run(
    folder: str | None,
    progress: Progress | None,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    dimensions: list[int],
    attacked: int,
    maps: bool,
) -> Result:
    """The comparison with its curves and losses, and ``maps`` of one release of each mechanism if they are wanted."""
    result = run_demo(epsilon, delta, seed, progress, dimensions=dimensions, attacked=attacked)
    files: dict[str, bytes] = {
        "demo-curves.svg": pictures.curves_svg(result),
        "demo-losses.svg": pictures.expected_losses_svg(result),
    }
    if maps:
        files |= {
            "demo-truth.png": pictures.map_png(result),
            **{map_file(row.key): pictures.map_png(result, row.key) for row in result.rows},
            "demo-scale.svg": pictures.scale_svg(result),
            "demo-spread.svg": pictures.spread_svg(result),
        }
    if result.frontier:
        files["demo-frontier.svg"] = frontier_svg(result.frontier)
    return Result(result.to_dict(), files)


def map_file(key: str) -> str:
    """The picture of one release."""
    return f"demo-map-{key}.png"


def _parameters(settings: Settings) -> Numbers:
    """Of the report, which shows curves and losses alone."""
    return {"epsilon": 0.5, "delta": 1e-7, "seed": settings.seed, "dimensions": [], "attacked": 0, "maps": False}


EXPERIMENT = Experiment("demo", _parameters, run)

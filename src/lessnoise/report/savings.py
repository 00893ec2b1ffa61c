"""How much loss can be saved: every mechanism relative to the Gaussian against the dimension, and the proved limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._display import Charted, Estimates, Facts, Listed
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import (
    Goal,
    Request,
    analytic_gaussian,
    best_member,
    l2_mechanism,
    least_noise,
    loss_lower_bound,
)
from lessnoise.report.canvas import COLOURS, GRID, INK, LINES, blank, style, svg
from lessnoise.text import down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from lessnoise._common import Progress


DIMENSIONS = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000)
EPSILONS = (0.1, 1.0, 4.0, 8.0)
_FAMILY_SEARCHED, _PATIENT = 30, 4_000_000  # from so many entries on least_noise has asked for the best member, too
_SMALLEST_RADIAL = 3  # entries; below, the search over (k, p) takes a minute and ends next to the l2 mechanism


@dataclass(frozen=True, slots=True)
class FrontierPoint(Listed, Charted):
    """Expected losses as fractions of the analytic Gaussian's. ``radial`` is None where it was not searched."""

    dimension: int
    epsilon: float
    delta: float
    l2: float
    radial: float | None
    least: float
    choice: str
    bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def _facts(self) -> Facts:
        shares = [("l2 mechanism", self.l2), ("best radial member", self.radial), ("least noise", self.least)]
        rows = [(name, "not searched" if share is None else f"{share:.4f}") for name, share in shares]
        rows += [("law of the least noise", self.choice)]
        rows += [("proved: no additive noise is below", "not computed" if self.bound is None else down(self.bound, 4))]
        return Facts(f"Loss over the Gaussian's, {self.dimension:,} entries at epsilon = {self.epsilon:g}", rows)

    def _chart(self) -> Estimates:
        shares = {
            "analytic Gaussian": 1.0,
            "l2 mechanism": self.l2,
            "best radial member": self.radial,
            f"least noise: {self.choice}": self.least,
        }
        found = {name: share for name, share in shares.items() if share is not None}
        mark = None if self.bound is None else ("no additive noise is below", self.bound)
        title = f"{self.dimension:,} entries at epsilon = {self.epsilon:g}, delta = {self.delta:g}"
        return Estimates(title, "expected squared loss / Gaussian's", list(found), list(found.values()), mark=mark)


def frontier(
    *,
    delta: float = 1e-6,
    epsilons: Sequence[float] = EPSILONS,
    dimensions: Sequence[int] = DIMENSIONS,
    bounds: bool = True,
    radial: bool = True,
    progress: Progress | None = None,
) -> list[FrontierPoint]:
    """One point for each epsilon and dimension, with the proved ``bounds`` and the best ``radial`` member if wanted.

    ``progress(label, done, total)`` is called before each point and at the end.

    >>> [point] = frontier(epsilons=[1.0], dimensions=[2], bounds=False, radial=False)
    >>> round(point.least, 3), point.choice
    (0.167, '31 shells')
    """
    validation.delta(delta)
    if not len(epsilons) or not len(dimensions):
        raise InvalidInput(f"epsilons={list(epsilons)}, dimensions={list(dimensions)}: pass at least one of each.")
    settings = [
        (validation.epsilon(e), validation.whole_number("dimension", m, minimum=1))
        for e in epsilons
        for m in dimensions
    ]
    points = []
    for done, (epsilon, dimension) in enumerate(settings):
        if progress is not None:
            progress(f"epsilon = {epsilon:g}, M = {dimension}", done, len(settings))
        points.append(_point(dimension, epsilon, delta, bounds, radial))
    if progress is not None:
        progress("done", len(settings), len(settings))
    return points


def _point(dimension: int, epsilon: float, delta: float, with_bound: bool, with_radial: bool) -> FrontierPoint:
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    goal, calibrated = Goal.of("squared"), Request(**target).reserved_delta
    unit = analytic_gaussian(**target).expected_loss
    l2 = l2_mechanism(**target).expected_loss / unit
    least = least_noise(**target)
    radial = None
    if with_radial and dimension >= _SMALLEST_RADIAL:
        most = {} if dimension >= _FAMILY_SEARCHED else {"most_cells": _PATIENT}
        member = best_member(dimension, epsilon, calibrated, goal, **most)
        radial = math.exp(2.0 * goal.log_size(member, dimension)) / unit
    return FrontierPoint(
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        l2=l2,
        radial=radial if radial is None else min(radial, l2, 1.0),
        least=least.expected_loss / unit,
        choice=least.design.choice if least.design is not None else "",
        bound=loss_lower_bound(**target) / unit if with_bound else None,
    )


def frontier_svg(points: Sequence[FrontierPoint]) -> bytes:
    """One panel an epsilon: loss relative to the Gaussian against M; what lies in the grey area is impossible."""
    epsilons = sorted({point.epsilon for point in points})
    columns = min(len(epsilons), 2)
    rows = math.ceil(len(epsilons) / columns)
    with style():
        width, height = (9.2, 3.4 * rows + 0.6) if columns == 2 else (8.4, 4.0)
        figure = blank(width, height)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        lowest = min(min(p.least, p.bound or p.least) for p in points)
        for place, epsilon in zip(axes, epsilons, strict=False):
            chosen = sorted((p for p in points if p.epsilon == epsilon), key=lambda p: p.dimension)
            _panel(place, chosen, 0.6 * lowest)
            place.set_title(f"epsilon = {epsilon:g}", fontsize=11, loc="left")
        for place in axes[len(epsilons) :]:
            place.set_axis_off()
        for place in axes[-columns:]:
            place.set_xlabel("number of entries M")
        for place in axes[::columns]:
            place.set_ylabel("loss / Gaussian's loss")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=5, frameon=False, fontsize=9)
        figure.subplots_adjust(left=0.75 / width, right=0.98, top=1.0 - 0.75 / height, bottom=0.55 / height)
        return svg(figure)


def _panel(axes: Axes, points: list[FrontierPoint], floor: float) -> None:
    size = np.array([point.dimension for point in points])
    bounded = [point for point in points if point.bound]
    if bounded:
        limit = [point.bound or 0.0 for point in bounded]
        where = [point.dimension for point in bounded]
        axes.fill_between(where, floor, limit, color="#E4E4E4", linewidth=0.0, label="impossible (proved)")
    axes.axhline(1.0, color=COLOURS["analytic-gaussian"], linewidth=1.6, label="analytic Gaussian")
    axes.plot(size, [p.l2 for p in points], color=COLOURS["l2"], linestyle=LINES["l2"], label="l2 mechanism")
    radial = [(p.dimension, p.radial) for p in points if p.radial is not None]
    if radial:
        axes.plot(
            *zip(*radial, strict=True), color=COLOURS["r1smg"], linestyle=":", linewidth=2.2, label="best radial (k, p)"
        )
    axes.plot(size, [p.least for p in points], color=INK, marker="o", markersize=4, linewidth=1.4, label="least noise")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(floor, 1.7)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)

"""Ours: audits. What attacks on releases prove against claims, without any theory of the mechanism."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.audit import audit
from lessnoise.mechanism import builders, families
from lessnoise.report.canvas import GRID, INK, blank, style, svg
from lessnoise_paper.experiments.common import judged
from lessnoise_paper.experiments.drawing import SOFT, VERDICT_COLOURS, legend_above, mark, note, rows_of
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise_paper.model import Numbers, Progress

_FLOOR = 1e-6


def run(folder: str | None, progress: Progress | None, *, seed: int, samples: int, rows: int) -> Result:
    """Attack the first ``rows`` mechanisms with ``samples`` releases, or ten times as many of a single number."""
    targets = _targets()[:rows]
    found = []
    for done, (label, mechanism) in enumerate(targets):
        tick(progress, f"attack on {label}", done, len(targets))
        many = samples * (10 if mechanism.dimension == 1 else 1)  # single numbers are cheap to draw
        report = audit(mechanism, np.zeros(mechanism.shape), samples=many, rng=np.random.default_rng([seed, done]))
        found.append({**judged(mechanism, label), "dimension": mechanism.dimension, "audit": report.to_dict()})
    return Result({"rows": found, "samples": samples, "seed": seed}, {"attacks.svg": _picture(found)})


def _targets() -> list[tuple[str, Mechanism]]:
    gaussian = builders.analytic_gaussian(epsilon=1, delta=1e-3, sensitivity=1, shape=1)
    return [
        (
            "R1SMG, published",
            builders.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=100, calibration="published"),
        ),
        ("product noise, published", families.product_noise(epsilon=1, sensitivity=1, shape=100)),
        ("half of a Gaussian's noise", _weaker(gaussian, 0.5)),
        ("textbook Gaussian beyond its range", builders.classic_gaussian(epsilon=8, delta=0.1, sensitivity=1, shape=1)),
        ("analytic Gaussian", gaussian),
        ("l2 mechanism", builders.l2_mechanism(epsilon=1, delta=1e-2, sensitivity=1, shape=10)),
        (
            "R1SMG, calibrated exactly",
            builders.r1smg(epsilon=1, delta=1e-2, sensitivity=1, shape=10, calibration="exact"),
        ),
    ]


def _weaker(mechanism: Mechanism, factor: float) -> Mechanism:
    """The same claim, with less noise."""
    law: Any = mechanism.law
    return replace(mechanism, law=replace(law, scale=factor * law.scale))


def _picture(rows: list[Numbers]) -> bytes:
    with style():
        height = 0.48 * len(rows) + 1.2
        figure = blank(8.6, height)
        axes = figure.add_axes((0.30, 0.55 / height, 0.56, 1.0 - 1.05 / height))
        for place, row in enumerate(rows):
            claimed, exact = max(row["claimed"]["delta"], _FLOOR), max(row["exact"]["upper"], _FLOOR)
            proved = max(row["audit"]["delta"], _FLOOR)
            colour = VERDICT_COLOURS["fails" if row["audit"]["refuted"] else "holds"]
            axes.plot([claimed, exact], [place, place], color=GRID, linewidth=6, zorder=1)
            axes.plot(claimed, place, "o", markerfacecolor="white", markeredgecolor=colour, markersize=9, zorder=3)
            axes.plot(exact, place, "|", color=INK, markersize=17, markeredgewidth=2.2, zorder=3)
            axes.plot(proved, place, ">", color=colour, markersize=8, zorder=4)
            words, ink = ("refuted", colour) if row["audit"]["refuted"] else ("not refuted", SOFT)
            note(axes, words, (1.02, place), (0, 0), ("axes fraction", "data"), va="center", fontsize=9, color=ink)
        rows_of(axes, [f"{row['label']}\nM = {row['dimension']}" for row in rows], size=8.5, line=True)
        axes.set_xlim(0.6 * _FLOOR, 1.3)
        axes.set_xlabel("delta at the claimed epsilon (logarithmic)")
        exact_mark = mark("exact", "|", color=INK, markersize=12, markeredgewidth=2)
        legend_above(figure, mark("claimed", "o"), mark("proved by the attack", ">"), exact_mark)
        return svg(figure)


def _parameters(settings: Settings) -> Numbers:
    return {"seed": settings.seed, "samples": 100_000 if settings.quick else 400_000, "rows": 7}


EXPERIMENT = Experiment("attacks", _parameters, run)

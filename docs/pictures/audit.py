"""Draw audit.png: what audits prove, beside what is claimed and what is true.

Run ``python docs/pictures/audit.py``; the picture appears beside this file. Every bound is a seeded run of
``lessnoise.audit`` with its default confidence, 99.9%.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from look import GRID, SOFT, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import lessnoise as ln

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, safe for colour-blind readers; every mark has its own shape, every line its own dashes.
CLAIMED, PROVED, EXACT = "#0072B2", "#D55E00", "#222222"
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)))
COLOURS = ("#0072B2", "#D55E00", "#009E73")


def weaker(mechanism: ln.Mechanism, factor: float) -> ln.Mechanism:
    """The same claim, with less noise."""
    law: Any = mechanism.law
    return replace(mechanism, law=replace(law, scale=factor * law.scale))


def mechanisms() -> list[tuple[str, ln.Mechanism, int]]:
    """Label, mechanism and number of releases of each row, from the falsest claim to the truest."""
    gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-3, sensitivity=1, shape=1)
    return [
        ("R1SMG, published\nM = 100", published_r1smg(), 200_000),
        ("product noise, published\nM = 100", ln.product_noise(epsilon=1, sensitivity=1, shape=100), 200_000),
        ("half of a Gaussian's noise", weaker(gaussian, 0.5), 1_000_000),
        ("textbook Gaussian\nat epsilon = 8", ln.classic_gaussian(epsilon=8, delta=0.1, sensitivity=1, shape=1), 10**6),
        ("0.9 of a Gaussian's noise", weaker(gaussian, 0.9), 1_000_000),
        ("analytic Gaussian", gaussian, 1_000_000),
        ("l2 mechanism\nM = 10", ln.l2_mechanism(epsilon=1, delta=1e-2, sensitivity=1, shape=10), 1_000_000),
    ]


def published_r1smg() -> ln.Mechanism:
    """The smallest setting of the record of claims that keeps the source's condition."""
    return ln.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=100, calibration="published")


def audited(mechanism: ln.Mechanism, samples: int) -> float:
    """The proved lower bound of delta."""
    return ln.audit(mechanism, np.zeros(mechanism.shape), samples=samples, rng=np.random.default_rng(1)).delta


def claims_panel(axes: Axes) -> None:
    """One row a mechanism: claimed, proved and exact delta."""
    rows = mechanisms()
    for row, (_, mechanism, samples) in enumerate(rows):
        claim = mechanism.claim
        assert claim is not None
        bound, exact = audited(mechanism, samples), mechanism.delta(claim.epsilon).middle
        refuted = bound > claim.delta
        axes.plot([claim.delta, exact], [row, row], color=GRID, linewidth=7, solid_capstyle="round", zorder=1)
        axes.plot(claim.delta, row, "o", color="white", markeredgecolor=CLAIMED, markeredgewidth=2, markersize=9)
        axes.plot(exact, row, "|", color=EXACT, markersize=19, markeredgewidth=2.5)
        axes.plot(max(bound, 1.4e-6), row, ">" if bound else "<", color=PROVED, markersize=9, zorder=4)
        axes.text(
            1.35,
            row,
            "refuted" if refuted else "not refuted",
            va="center",
            color=PROVED if refuted else SOFT,
            fontsize=11,
        )
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -1.1)
    axes.set_xscale("log")
    axes.set_xlim(1e-6, 1.0)
    axes.xaxis.set_major_locator(FixedLocator([10.0**i for i in range(-6, 1)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("delta at the claimed epsilon", fontsize=11.5, labelpad=8)
    axes.tick_params(axis="y", length=0)
    for x, marker, colour, text in (
        (1.6e-6, "o", CLAIMED, "claimed"),
        (4e-5, ">", PROVED, "proved by the audit"),
        (2.2e-2, "|", EXACT, "exact"),
    ):
        face = "white" if marker == "o" else colour
        axes.plot(x, -0.8, marker, color=face, markeredgecolor=colour, markeredgewidth=2, markersize=9, clip_on=False)
        axes.text(x * 1.45, -0.8, text, va="center", fontsize=11)


def samples_panel(axes: Axes) -> None:
    """The bound over the exact delta, against the number of releases."""
    gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-3, sensitivity=1, shape=1)
    lines = [
        ("R1SMG,\npublished,\n", published_r1smg(), 6, (1.3e3, 0.5)),
        ("half of\na Gaussian's\nnoise,\n", weaker(gaussian, 0.5), 7, (1.6e4, 0.13)),
        ("0.9 of a Gaussian's\nnoise,", weaker(gaussian, 0.9), 7, (3.2e5, 0.08)),
    ]
    for (label, mechanism, largest, place), colour, dashes in zip(lines, COLOURS, DASHES, strict=True):
        counts = np.unique(np.round(np.geomspace(300, 10**largest, 4 * largest - 9)).astype(int))
        claim = mechanism.claim
        assert claim is not None
        exact = mechanism.delta(claim.epsilon).middle
        axes.plot(
            counts, [audited(mechanism, int(n)) / exact for n in counts], color=colour, linestyle=dashes, linewidth=2.2
        )
        axes.text(*place, f"{label} exact {exact:.2g}".replace("\n ", "\n"), color=colour, fontsize=11)
    axes.axhline(1.0, color=EXACT, linewidth=1.2)
    axes.text(330, 1.02, "the exact delta", fontsize=10.5, color=SOFT)
    axes.set_xscale("log")
    axes.set_xlim(300, 1e7)
    axes.set_ylim(0.0, 1.1)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%"))
    axes.set_xlabel("releases", fontsize=11.5, labelpad=8)
    axes.set_ylabel("proved delta, relative to the exact one", fontsize=11.5, labelpad=8)
    axes.grid(axis="y", color=GRID, linewidth=0.8)


def draw() -> Figure:
    """The whole picture."""
    figure = Figure(figsize=(14.0, 6.6), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    left = figure.add_axes((0.155, 0.12, 0.31, 0.65))
    right = figure.add_axes((0.63, 0.12, 0.35, 0.65))
    claims_panel(left)
    samples_panel(right)
    figure.text(
        0.02, 0.945, "An audit proves a lower bound of the true delta", fontsize=17, fontweight="bold", va="center"
    )
    figure.text(
        0.02,
        0.89,
        "Attacks guess which of two inputs was released. All bounds hold with 99.9% confidence.",
        fontsize=12.5,
        color=SOFT,
        va="center",
    )
    left.set_title("Claims, proofs and the truth", loc="left", fontsize=13.5, fontweight="bold", pad=14)
    right.set_title("More releases prove more", loc="left", fontsize=13.5, fontweight="bold", pad=14)
    return figure


def main() -> None:
    """Write the picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ln.ClaimWarning)
        save(draw, "audit.png")


if __name__ == "__main__":
    main()

"""What the paper does not have: the record of claims, the least noise and its limit, and attacks on releases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise import text
from lessnoise.audit import audit
from lessnoise.claims import CASES
from lessnoise.report import DIMENSIONS, EPSILONS, GRID, INK, blank, frontier, frontier_svg, style, svg
from lessnoise_paper.experiments.common import judged
from lessnoise_paper.experiments.drawing import SOFT, VERDICT_COLOURS, legend_above, mark, note, rows_of
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lessnoise.claims import Finding
    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers, Progress


def _beside(axes: Axes, place: int, claimed: float, exact: float, colour: str, size: float) -> None:
    """A claimed delta as an open circle in its row, with a bar that leads to the exact one."""
    axes.plot([claimed, exact], [place, place], color=GRID, linewidth=size - 3.0, zorder=1)
    axes.plot(claimed, place, "o", markerfacecolor="white", markeredgecolor=colour, markersize=size, zorder=3)


# The record of claims.

_CLAIM_FLOOR = 1e-12  # smaller deltas are drawn here


def judge_claims(folder: str | None, progress: Progress | None, *, cases: int) -> Result:
    """Judge the first ``cases`` claims of the record."""
    findings = []
    for done, case in enumerate(CASES[:cases]):
        tick(progress, f"{case.name}, {case.setting}", done, cases)
        findings.append(case.evaluate())
    rows = [{**_without_description(finding), "verdict_word": finding.verdict.word} for finding in findings]
    return Result({"rows": rows}, {"claims.svg": _claims_picture(findings)})


def _without_description(finding: Finding) -> Numbers:
    values = finding.to_dict()
    del values["description"]
    return values


def _claims_picture(findings: list[Finding]) -> bytes:
    """One line a claim: circle at the claimed delta, cross at the exact one."""
    with style():
        height = 0.31 * len(findings) + 0.95
        figure = blank(9.4, height)
        axes = figure.add_axes((0.475, 0.5 / height, 0.505, 1.0 - 0.9 / height))
        for place, finding in enumerate(findings):
            colour = VERDICT_COLOURS[finding.verdict.word]
            claimed, exact = (max(value, _CLAIM_FLOOR) for value in (finding.claimed.delta, finding.exact.upper))
            lower = max(finding.exact.lower, _CLAIM_FLOOR)
            _beside(axes, place, claimed, exact, colour, 8)
            if exact > 1.2 * lower:
                axes.plot([lower, exact], [place, place], color=colour, linewidth=2.2, zorder=2)
            axes.plot(exact, place, "X", color=colour, markersize=7, markeredgecolor="none", zorder=4)
        labels = [f"{f.name} {text.pair(f.claimed)}: {f.setting.split(':')[0]}" for f in findings]
        rows_of(axes, labels, size=8, line=True)
        axes.set_ylim(len(findings) - 0.5, -0.6)
        axes.set_xlim(0.4 * _CLAIM_FLOOR, 2.5)
        axes.set_xlabel(f"delta at the claimed epsilon (logarithmic; {text.number(_CLAIM_FLOOR)} or less at the left)")
        verdicts = [mark(word, color=VERDICT_COLOURS[word], linewidth=4) for word in ("holds", "fails")]
        legend_above(figure, mark("claimed", "o"), mark("exact (upper end)", "X"), *verdicts)
        return svg(figure)


# The least noise.


def draw_frontier(folder: str | None, progress: Progress | None, *, delta: float, **options: Any) -> Result:  # noqa: ANN401
    """The frontier with its proved bounds."""
    points = frontier(delta=delta, **options, progress=progress)
    numbers = {"delta": delta, "points": [point.to_dict() for point in points]}
    return Result(numbers, {"frontier.svg": frontier_svg(points)})


def _frontier_parameters(settings: Settings) -> Numbers:
    return {
        "delta": 1e-6,
        "epsilons": [1.0, 8.0] if settings.quick else list(EPSILONS),
        "dimensions": [1, 10, 100, 1000] if settings.quick else list(DIMENSIONS),
        "radial": not settings.quick,
    }


# Attacks.

_ATTACK_FLOOR = 1e-6


def attack(folder: str | None, progress: Progress | None, *, seed: int, samples: int, rows: int) -> Result:
    """Attack the first ``rows`` mechanisms with ``samples`` releases, or ten times as many of a single number."""
    targets = _targets()[:rows]
    found = []
    for done, (label, mechanism) in enumerate(targets):
        tick(progress, f"attack on {label}", done, len(targets))
        many = samples * (10 if mechanism.dimension == 1 else 1)  # single numbers are cheap to draw
        report = audit(mechanism, np.zeros(mechanism.shape), samples=many, rng=np.random.default_rng([seed, done]))
        found.append({**judged(mechanism, label), "dimension": mechanism.dimension, "audit": report.to_dict()})
    return Result({"rows": found, "samples": samples, "seed": seed}, {"attacks.svg": _attacks_picture(found)})


def _targets() -> list[tuple[str, Mechanism]]:
    sizes: list[dict[str, Any]] = [{"sensitivity": 1, "shape": shape} for shape in (1, 10, 100)]
    one, ten, hundred = sizes
    gaussian = mechanisms.analytic_gaussian(epsilon=1, delta=1e-3, **one)
    return [
        ("R1SMG, published", mechanisms.r1smg(epsilon=1e-3, delta=1e-5, **hundred, calibration="published")),
        ("product noise, published", mechanisms.product_noise(epsilon=1, **hundred)),
        ("half of a Gaussian's noise", _weaker(gaussian, 0.5)),
        ("textbook Gaussian beyond its range", mechanisms.classic_gaussian(epsilon=8, delta=0.1, **one)),
        ("analytic Gaussian", gaussian),
        ("l2 mechanism", mechanisms.l2_mechanism(epsilon=1, delta=1e-2, **ten)),
        ("R1SMG, calibrated exactly", mechanisms.r1smg(epsilon=1, delta=1e-2, **ten, calibration="exact")),
    ]


def _weaker(mechanism: Mechanism, factor: float) -> Mechanism:
    """The same claim, with less noise."""
    law: Any = mechanism.law
    return replace(mechanism, law=replace(law, scale=factor * law.scale))


def _attacks_picture(rows: list[Numbers]) -> bytes:
    with style():
        height = 0.48 * len(rows) + 1.2
        figure = blank(8.6, height)
        axes = figure.add_axes((0.30, 0.55 / height, 0.56, 1.0 - 1.05 / height))
        for place, row in enumerate(rows):
            claimed, exact = max(row["claimed"]["delta"], _ATTACK_FLOOR), max(row["exact"]["upper"], _ATTACK_FLOOR)
            proved = max(row["audit"]["delta"], _ATTACK_FLOOR)
            colour = VERDICT_COLOURS["fails" if row["audit"]["refuted"] else "holds"]
            _beside(axes, place, claimed, exact, colour, 9)
            axes.plot(exact, place, "|", color=INK, markersize=17, markeredgewidth=2.2, zorder=3)
            axes.plot(proved, place, ">", color=colour, markersize=8, zorder=4)
            words, ink = ("refuted", colour) if row["audit"]["refuted"] else ("not refuted", SOFT)
            note(axes, words, (1.02, place), (0, 0), ("axes fraction", "data"), va="center", fontsize=9, color=ink)
        rows_of(axes, [f"{row['label']}\nM = {row['dimension']}" for row in rows], size=8.5, line=True)
        axes.set_xlim(0.6 * _ATTACK_FLOOR, 1.3)
        axes.set_xlabel("delta at the claimed epsilon (logarithmic)")
        exact_mark = mark("exact", "|", color=INK, markersize=12, markeredgewidth=2)
        legend_above(figure, mark("claimed", "o"), mark("proved by the attack", ">"), exact_mark)
        return svg(figure)


CLAIMS = Experiment("claims", lambda _settings: {"cases": len(CASES)}, judge_claims)
FRONTIER = Experiment("frontier", _frontier_parameters, draw_frontier)
ATTACKS = Experiment(
    "attacks",
    lambda settings: {"seed": settings.seed, "samples": 50_000 if settings.quick else 400_000, "rows": 7},
    attack,
)

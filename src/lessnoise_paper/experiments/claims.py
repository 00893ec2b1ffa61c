"""Ours: the record of published claims, each with its exact delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.claims import CASES
from lessnoise.report import text
from lessnoise.report.canvas import GRID, blank, style, svg
from lessnoise_paper.experiments.drawing import VERDICT_COLOURS, legend_above, mark, rows_of
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from lessnoise.claims import Finding
    from lessnoise_paper.model import Numbers, Progress

_FLOOR = 1e-12  # smaller deltas are drawn here


def run(folder: str | None, progress: Progress | None, *, cases: int) -> Result:
    """Judge the first ``cases`` claims of the record."""
    findings = []
    for done, case in enumerate(CASES[:cases]):
        tick(progress, f"{case.name}, {case.setting}", done, cases)
        findings.append(case.evaluate())
    rows = [{**_without_description(finding), "verdict_word": finding.verdict.word} for finding in findings]
    return Result({"rows": rows}, {"claims.svg": _picture(findings)})


def _without_description(finding: Finding) -> Numbers:
    values = finding.to_dict()
    del values["description"]
    return values


def _picture(findings: list[Finding]) -> bytes:
    """One line a claim: circle at the claimed delta, cross at the exact one."""
    with style():
        height = 0.31 * len(findings) + 0.95
        figure = blank(9.4, height)
        axes = figure.add_axes((0.475, 0.5 / height, 0.505, 1.0 - 0.9 / height))
        for place, finding in enumerate(findings):
            colour = VERDICT_COLOURS[finding.verdict.word]
            claimed, exact = (max(value, _FLOOR) for value in (finding.claimed.delta, finding.exact.upper))
            lower = max(finding.exact.lower, _FLOOR)
            axes.plot([claimed, exact], [place, place], color=GRID, linewidth=5, zorder=1)
            if exact > 1.2 * lower:
                axes.plot([lower, exact], [place, place], color=colour, linewidth=2.2, zorder=2)
            axes.plot(claimed, place, "o", markerfacecolor="white", markeredgecolor=colour, markersize=8, zorder=3)
            axes.plot(exact, place, "X", color=colour, markersize=7, markeredgecolor="none", zorder=4)
        labels = [f"{f.name} {text.pair(f.claimed)}: {f.setting.split(':')[0]}" for f in findings]
        rows_of(axes, labels, size=8, line=True)
        axes.set_ylim(len(findings) - 0.5, -0.6)
        axes.set_xlim(0.4 * _FLOOR, 2.5)
        axes.set_xlabel(f"delta at the claimed epsilon (logarithmic; {text.number(_FLOOR)} or less at the left)")
        verdicts = [mark(word, color=VERDICT_COLOURS[word], linewidth=4) for word in ("holds", "fails")]
        legend_above(figure, mark("claimed", "o"), mark("exact (upper end)", "X"), *verdicts)
        return svg(figure)


def _parameters(settings: Settings) -> Numbers:
    return {"cases": len(CASES)}


EXPERIMENT = Experiment("claims", _parameters, run)

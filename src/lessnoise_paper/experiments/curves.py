"""Ours: the exact curves of every mechanism on one count query, with each claim beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.report.canvas import COLOURS
from lessnoise_paper.demo import pictures as plots
from lessnoise_paper.demo import run_demo
from lessnoise_paper.model import Made, Settings, Work

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress


def make(folder: str | None, progress: Progress | None, *, epsilon: float, delta: float, seed: int) -> Made:
    """The demonstration's comparison, its curves and its losses."""
    result = run_demo(epsilon, delta, seed, progress, dimensions=())
    numbers = result.to_dict()
    del numbers["frontier"]
    for values, row in zip(numbers["rows"], result.rows, strict=True):
        values |= {"colour": COLOURS[row.key], "verdict_word": row.verdict.word}
    pictures = {
        "curves.svg": plots.curves_svg(result),
        "losses-of-all.svg": plots.losses_svg(result),
    }
    return Made(numbers, pictures)


def _parameters(settings: Settings) -> Numbers:
    return {"epsilon": 0.5, "delta": 1e-7, "seed": settings.seed}


WORK = Work("curves", _parameters, make)

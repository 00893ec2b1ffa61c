"""Case study I: count queries on a city, at the paper's settings and at equal exact privacy."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.guarantees import Guarantee
from lessnoise.harmless import csv_text
from lessnoise_paper.experiments import counts_pictures as pictures
from lessnoise_paper.experiments.uber import STRICT_EPSILON, SYNTHETIC, run_uber
from lessnoise_paper.model import Experiment, Result, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise_paper.model import Numbers, Progress

_REAL = "uber"
_COLUMNS = {
    "mechanism": "label",
    "neighbours": "verdict.claimed.neighbours",
    "claimed_epsilon": "verdict.claimed.epsilon",
    "claimed_delta": "verdict.claimed.delta",
    "exact_delta_lower": "verdict.exact.lower",
    "exact_delta_upper": "verdict.exact.upper",
    "verdict": "verdict_word",
    "mean_loss_occupied": "losses.mean_valid",
    "expected_loss_occupied": "losses.expected_valid",
    "paper_mean": "paper_mean_valid",
    "mean_loss_all": "losses.mean_whole",
    "expected_loss_all": "losses.expected_whole",
    **{name: f"losses.{name}" for name in ("kurtosis", "observed_kurtosis", "skewness", "observed_skewness")},
}
"""The columns of the table, and where their values are in a row."""


def run(folder: str | None, progress: Progress | None, *, data: str, **options: int) -> Result:
    """Run the study once; figures 4, 5 and 10 and the comparison on equal terms show parts of it."""
    result = run_uber(SYNTHETIC if data == SYNTHETIC else folder, **options, progress=progress)
    numbers = result.to_dict()
    found = {
        "counts-table.csv": table_csv(numbers).encode(),
        "counts-losses.svg": pictures.loss_strips_svg(result),
        "counts-densities.svg": pictures.densities_svg(result),
        "counts-equal.svg": pictures.honest_svg(result),
        "counts-scale.svg": pictures.scale_svg(result),
        "counts-scale-strict.svg": pictures.scale_svg(result, strict=True),
        "counts-truth.png": pictures.map_png(result, None),
        "counts-maps.png": pictures.maps_png(result, result.paper),
    }
    found |= {map_file("paper", row.key): pictures.map_png(result, row) for row in result.paper}
    found |= {map_file("strict", row.key): pictures.map_png(result, row, strict=True) for row in result.strict[1:]}
    found |= {map_file("equal", row.key): pictures.map_png(result, row) for row in result.honest}
    return Result(numbers, found)


def map_file(part: str, key: str) -> str:
    """The picture of one release."""
    return f"counts-{part}-{key}.png"


def parts(numbers: Numbers) -> dict[str, str]:
    """The keys of the four settings, each in words."""
    target, true = (Guarantee.from_dict(numbers[name]) for name in ("honest_target", "true_r1smg_target"))
    return {
        "paper_settings": "the paper's settings",
        "all_at_1e-5": f"all at epsilon = {text.number(STRICT_EPSILON)}",
        "honest": f"all at {text.pair(target)}, exactly",
        "at_the_true_r1smg_guarantee": f"all at {text.pair_up(true)}, exactly",
    }


def table_csv(numbers: Numbers) -> str:
    """One line a mechanism and setting."""
    rows: list[Sequence[object]] = [("setting", *_COLUMNS)]
    for part, setting in parts(numbers).items():
        for row in numbers[part]:
            cells = [functools.reduce(lambda at, name: at[name], path.split("."), row) for path in _COLUMNS.values()]
            rows.append([setting, *cells])
    return csv_text(rows)


def _parameters(settings: Settings) -> Numbers:
    return {
        "data": SYNTHETIC if settings.quick else _REAL,
        "repetitions": 40 if settings.quick else 100,
        "attack_releases": 1000 if settings.quick else 10_000,
        "seed": settings.seed,
    }


EXPERIMENT = Experiment("counts", _parameters, run)

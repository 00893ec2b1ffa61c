"""Case study I: count queries on a city, at the paper's settings and at equal exact privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.model import Made, Settings, Work
from lessnoise_paper.studies import uber_pictures as pictures
from lessnoise_paper.studies.uber import SYNTHETIC, run_uber

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress
    from lessnoise_paper.studies.uber import StudyRow, UberResult

_REAL = "uber"


def make(
    folder: str | None,
    progress: Progress | None,
    *,
    data: str,
    repetitions: int,
    attack_releases: int,
    seed: int,
) -> Made:
    """Run the study once; figures 4, 5 and 10 and the comparison on equal terms show parts of it."""
    result = run_uber(
        SYNTHETIC if data == SYNTHETIC else folder,
        repetitions=repetitions,
        attack_releases=attack_releases,
        seed=seed,
        progress=progress,
    )
    found = {
        "counts-losses.svg": pictures.losses_svg(result),
        "counts-densities.svg": pictures.densities_svg(result),
        "counts-equal.svg": pictures.honest_svg(result),
        "counts-truth.png": pictures.map_png(result, None),
        "counts-maps.png": pictures.maps_png(result, result.paper, truth=True),
    }
    found |= {map_file("paper", row.key): pictures.map_png(result, row) for row in result.paper}
    found |= {map_file("strict", row.key): pictures.map_png(result, row, own_scale=True) for row in result.strict[1:]}
    found |= {map_file("equal", row.key): pictures.map_png(result, row) for row in result.honest}
    return Made(_numbers(result), found)


def map_file(part: str, key: str) -> str:
    """The picture of one release."""
    return f"counts-{part}-{key}.png"


def _numbers(result: UberResult) -> Numbers:
    """The study's own numbers, and what captions say of each row."""
    parts: dict[str, tuple[StudyRow, ...]] = {
        "paper_settings": result.paper,
        "all_at_1e-5": result.strict,
        "honest": result.honest,
        "at_the_true_r1smg_guarantee": result.true,
    }
    numbers = {**result.to_dict(), "synthetic": result.synthetic}
    for part, rows in parts.items():
        for values, row in zip(numbers[part], rows, strict=True):
            values |= {
                "colour": pictures.colour(row),
                "mean_loss": row.losses.mean_valid,
                "verdict_word": row.verdict.word,
            }
    return numbers


def _parameters(settings: Settings) -> Numbers:
    return {
        "data": SYNTHETIC if settings.quick else _REAL,
        "repetitions": 100,
        "attack_releases": 2000 if settings.quick else 10_000,
        "seed": settings.seed,
    }


WORK = Work("counts", _parameters, make)

"""Case study II: principal components, at the paper's settings and at equal exact privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessnoise.report import svg
from lessnoise_paper.data import tables
from lessnoise_paper.experiments.components import COMPONENTS, DELTA, REPETITIONS, SWEEPS, run_pca
from lessnoise_paper.experiments.components_pictures import FIGURES
from lessnoise_paper.model import Experiment, Result, Settings

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress

ADDED = ("repetitions", "trace", "pictures")
"""Numbers beside those of the study itself."""


def run(folder: str | None, progress: Progress | None, *, table: str, **options: Any) -> Result:  # noqa: ANN401
    """Run the study once; figures 6 and 11 and the comparison on equal terms show parts of it."""
    chosen = tables.feature_table(table, folder)
    study = run_pca(chosen, **options, progress=progress)
    pictures = {
        f"pca-{name}.svg": svg(draw(study)) for name, draw in FIGURES.items() if name != "components" or study.image
    }
    more = {  # beside what PcaStudy.from_dict reads
        "repetitions": len(study.points[0].deviations),
        "trace": float((chosen.rows**2).sum() / len(chosen.rows)),
        "pictures": sorted(pictures),
    }
    return Result({**study.to_dict(), **more}, pictures)


def _parameters(settings: Settings) -> Numbers:
    return {
        "table": "digits" if settings.quick else "mnist",
        "epsilons": [0.2, 1.6] if settings.quick else [0.2, 0.9, 1.6],
        "repetitions": REPETITIONS,
        "sweeps": 5 if settings.quick else SWEEPS,
        "components": COMPONENTS,
        "delta": DELTA,
        "clip_norm": None,
        "seed": settings.seed,
    }


EXPERIMENT = Experiment("pca", _parameters, run)

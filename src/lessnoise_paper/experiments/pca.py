"""Case study II: principal components, at the paper's settings and at equal exact privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.model import Made, Settings, Work

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress


def make(
    folder: str | None,
    progress: Progress | None,
    *,
    table: str,
    epsilons: list[float],
    repetitions: int,
    sweeps: int,
    seed: int,
) -> Made:
    """Run the study once; figures 6 and 11 and the comparison on equal terms show parts of it."""
    from lessnoise.report.canvas import svg
    from lessnoise_paper.data.tables import feature_table
    from lessnoise_paper.studies.pca import run_pca
    from lessnoise_paper.studies.pca_pictures import FIGURES

    chosen = feature_table(table, folder)
    study = run_pca(
        chosen,
        epsilons=epsilons,
        repetitions=repetitions,
        sweeps=sweeps,
        seed=seed,
        progress=progress,
    )
    pictures = {
        f"pca-{name}.svg": svg(draw(study)) for name, draw in FIGURES.items() if name != "components" or study.image
    }
    more = {
        "repetitions": repetitions,
        "trace": float((chosen.rows**2).sum() / len(chosen.rows)),
        "pictures": sorted(pictures),
    }
    return Made({**study.to_dict(), **more}, pictures)


def _parameters(settings: Settings) -> Numbers:
    return {
        "table": "digits" if settings.quick else "mnist",
        "epsilons": [0.2, 0.9, 1.6],
        "repetitions": 2 if settings.quick else 1,
        "sweeps": 5,
        "seed": settings.seed,
    }


WORK = Work("pca", _parameters, make)

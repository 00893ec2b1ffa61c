"""What MVG needs at the paper's two matrix queries: by its theorem, by its authors' first code, and exactly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from lessnoise import mechanism as mechanisms
from lessnoise_paper.data.uber import WINDOW_ROWS
from lessnoise_paper.experiments.common import COUNT_QUERY, judged
from lessnoise_paper.model import Experiment, Result, tick

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers, Progress

    Calibration = Literal["published", "code", "exact"]

FEATURES, RECORDS = 2400, 24_016
PAPER_PRODUCT = 0.011
"""What the paper says that MVG requires at its PCA query, at epsilon = 1.6 (Ji & Li 2024, section 7.2)."""

_CALIBRATIONS: dict[Calibration, str] = {
    "published": "MVG, its theorem",
    "code": "MVG, its authors' first code",
    "exact": "MVG, calibrated exactly",
}


def covariance_query(features: int = FEATURES, records: int = RECORDS) -> Numbers:
    """The paper's PCA query: entries in [-1, 1], one record replaced (Ji & Li 2024, section 7.2)."""
    return {
        "epsilon": 1.6,
        "delta": 1e-7,
        "sensitivity": math.sqrt(2.0) * features / records,
        "shape": [features, features],
        "bound": float(features),  # gamma: all entries 1
        "neighbours": "replace",
    }


def run(folder: str | None, progress: Progress | None, *, queries: dict[str, Numbers]) -> Result:
    """A row for each query and calibration: the product of norms, the deviation of an entry, and the exact delta."""
    rows: list[Numbers] = []
    for title, query in queries.items():
        for calibration, label in _CALIBRATIONS.items():
            tick(progress, f"{title}: {label}", len(rows), len(queries) * len(_CALIBRATIONS))
            rows.append({"query": title, "key": calibration, **_row(query, calibration, label)})
    rows_and_columns = math.prod(queries["covariance"]["shape"])
    paper = {
        "product": PAPER_PRODUCT,
        # Isotropic noise: ||sv(S^-1)||_2 ||sv(P^-1)||_2 = sqrt(mn)/deviation^2.
        "standard_deviation": math.sqrt(math.sqrt(rows_and_columns) / PAPER_PRODUCT),
    }
    return Result({"queries": queries, "rows": rows, "paper": paper})


def _row(query: Numbers, calibration: Calibration, label: str) -> Numbers:
    target: dict[str, Any] = {**query, "shape": tuple(query["shape"])}
    described: Mechanism = mechanisms.mvg(**target, calibration=calibration)
    judgement = judged(described, label)
    product = math.sqrt(math.prod(target["shape"])) / judgement["standard_deviation"] ** 2
    return {**judgement, "product": product}


_QUERIES: dict[str, Numbers] = {
    "counts": {**COUNT_QUERY, "epsilon": 0.5, "bound": float(WINDOW_ROWS)},  # all pickups in one cell
    "covariance": covariance_query(),
}
EXPERIMENT = Experiment("mvg", lambda _settings: {"queries": _QUERIES}, run)

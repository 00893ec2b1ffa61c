"""Remarks of the paper as numbers: dependent queries (Property 1), moments of the loss (Remark 2), and appendix A."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise.report import COLOURS, INK, MORE_COLOURS, blank, style, svg
from lessnoise_paper import theory
from lessnoise_paper.experiments.common import COUNT_QUERY, judged
from lessnoise_paper.experiments.drawing import note, quiet_axes
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise_paper.model import Numbers, Progress

    Array = NDArray[np.float64]

_PUBLISHED, _GAUSSIAN, _SPAN = COLOURS["r1smg-published"], COLOURS["analytic-gaussian"], COLOURS["laplace"]


# Dependent queries (Property 1).


def make_queries(
    folder: str | None,
    progress: Progress | None,
    *,
    seed: int,
    draws: int,
    types: int,
    counts: list[int],
    epsilon: float,
    delta: float,
) -> Result:
    """Random binary queries over a few types of records: noise in all entries, and noise in the span of the queries."""
    rng = np.random.default_rng([seed, 6])
    whole = rng.integers(0, 2, (max(counts), types)).astype(float)
    variance = mechanisms.gaussian_scale(epsilon, delta) ** 2
    rows = []
    for done, count in enumerate(counts):
        tick(progress, f"{count} queries", done, len(counts))
        queries = whole[:count] / count  # f(x) = Q x / M
        sensitivity = float(np.linalg.norm(queries, axis=0).max())
        target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "shape": count}
        published = mechanisms.r1smg(**target, calibration="published")
        rank = int(np.linalg.matrix_rank(queries))
        rows.append(
            {
                "queries": count,
                "rank": rank,
                "sensitivity": sensitivity,
                "span": rank * variance,
                "simulated": variance * _square_in_span(queries, draws, rng),
                "gaussian": count * variance,
                "r1smg": published.expected_loss / sensitivity**2,
                **judged(published, "R1SMG, published"),
            }
        )
    setting = {"epsilon": epsilon, "delta": delta, "types": types}
    numbers = {"setting": setting, "variance": variance, "draws": draws, "seed": seed, "rows": rows}
    return Result(numbers, {"dependent-queries.svg": _queries_picture(numbers)})


def _square_in_span(queries: Array, draws: int, rng: np.random.Generator) -> float:
    """Mean squared length, in draws, of standard normal noise after projection on the span of the queries."""
    basis, singular, _ = np.linalg.svd(queries, full_matrices=False)
    basis = basis[:, singular > 1e-9 * singular[0]]
    drawn = rng.standard_normal((draws, queries.shape[0])) @ basis
    return float((drawn**2).sum(axis=1).mean())


def _queries_picture(numbers: Numbers) -> bytes:
    rows = numbers["rows"]
    sizes = [row["queries"] for row in rows]
    with style():
        figure = blank(8.6, 4.0)
        axes = figure.add_axes((0.09, 0.14, 0.68, 0.80))
        lines: tuple[tuple[str, str, Any, str], ...] = (
            ("gaussian", _GAUSSIAN, "-", "noise in every entry"),
            ("span", _SPAN, (0, (5, 1.5)), "noise in the span\nof the queries"),
            ("r1smg", _PUBLISHED, (0, (2, 1.5)), "R1SMG, published:\ndoes not keep\nits promise"),
        )
        for key, colour, dashes, words in lines:
            axes.plot(sizes, [row[key] for row in rows], color=colour, linestyle=dashes, linewidth=2)
            note(axes, words, (sizes[-1], rows[-1][key]), (7, 0), va="center", color=colour)
        axes.axvline(numbers["setting"]["types"], color=INK, linewidth=0.8)
        beside = ("data", "axes fraction")
        note(axes, "more queries are always dependent", (numbers["setting"]["types"], 0.93), (5, 0), beside)
        quiet_axes(axes, log="xy")
        axes.set_ylim(bottom=100.0)
        axes.set_xlabel("number of queries M")
        axes.set_ylabel("expected loss / squared sensitivity")
        return svg(figure)


# Moments of the loss (Remark 2).


def make_moments(folder: str | None, progress: Progress | None, *, ranks: list[int]) -> Result:
    """Kurtosis and skewness of the loss about zero and about the mean, and how heavy its tail is, for each rank."""
    tick(progress, "moments", 0, 1)
    rows = [
        {
            "rank": rank,
            "kurtosis": theory.loss_kurtosis(rank),
            "central_kurtosis": theory.loss_kurtosis(rank, central=True),
            "skewness": theory.loss_skewness(rank),
            "central_skewness": theory.loss_skewness(rank, central=True),
            "tail": theory.loss_quantile_ratio(rank, 0.999),
            "low": theory.loss_quantile_ratio(rank, 0.001),
        }
        for rank in ranks
    ]
    published = mechanisms.r1smg(**{**COUNT_QUERY, "shape": tuple(COUNT_QUERY["shape"])}, calibration="published")
    numbers = {"setting": COUNT_QUERY, **judged(published, "R1SMG, published"), "rows": rows}
    return Result(numbers, {"moments.svg": _moments_picture(rows)})


def _moments_picture(rows: list[Numbers]) -> bytes:
    ranks = [row["rank"] for row in rows]
    with style():
        figure = blank(9.4, 3.7)
        left, middle, right = (figure.add_axes((at, 0.17, 0.25, 0.68)) for at in (0.06, 0.395, 0.73))
        for axes, key, title in ((left, "kurtosis", "Kurtosis"), (middle, "skewness", "Skewness")):
            central = [row[f"central_{key}"] for row in rows]
            axes.plot(ranks, central, "o-", color=_GAUSSIAN, linewidth=2, markersize=4)
            axes.plot(ranks, [row[key] for row in rows], "s--", color=_PUBLISHED, linewidth=2, markersize=4)
            axes.set_title(title, fontsize=10, fontweight="bold", loc="left")
        note(left, "about the mean", (ranks[1], rows[1]["central_kurtosis"]), (9, 4), color=_GAUSSIAN)
        note(left, "about zero", (ranks[-1], rows[-1]["kurtosis"]), (0, 8), ha="right", color=_PUBLISHED)
        note(middle, "about the mean", (0.02, 0.06), (0, 0), "axes fraction", color=_GAUSSIAN)
        note(middle, "about zero", (ranks[-1], rows[-1]["skewness"]), (0, 6), ha="right", color=_PUBLISHED)
        right.fill_between(ranks, [row["low"] for row in rows], [row["tail"] for row in rows], color="#E4E4E4")
        for key in ("tail", "low"):
            right.plot(ranks, [row[key] for row in rows], "o-", color=INK, linewidth=1.6, markersize=3)
        right.set_title("Loss / mean, 99.8% of releases", fontsize=10, fontweight="bold", loc="left")
        right.set_yscale("log")
        for axes in (left, middle, right):
            quiet_axes(axes, log="x")
            axes.set_xlabel("rank H of the noise")
        for axes in (left, middle):
            axes.set_ylim(bottom=0.0)
        return svg(figure)


# The chain of section 3.2, and appendix A.

_STEPS = ("trace", "two_norms", "harmonic", "theorem", "without_beta", "constant")


def make_chain(
    folder: str | None,
    progress: Progress | None,
    *,
    seed: int,
    draws: int,
    spreads: list[float],
    shape: list[int],
    epsilon: float,
    delta: float,
) -> Result:
    """Every step from MVG's theorem to C_M for random covariances, and appendix A for random eigenvalues."""
    rng = np.random.default_rng([seed, 7])
    rows = []
    for done, spread in enumerate(spreads):
        tick(progress, f"spread {spread:g}", done, len(spreads) + 1)
        chains = [
            theory.mvg_chain(
                *(np.exp(spread * rng.standard_normal(size)) for size in shape), epsilon=epsilon, delta=delta
            )
            for _ in range(draws if spread else 1)
        ]
        steps = np.array([chain.steps for chain in chains])
        middle = sorted(chains, key=lambda chain: chain.trace)[len(chains) // 2]
        rows.append(
            {
                "spread": spread,
                "matrices": len(chains),
                "least": steps.min(axis=0).tolist(),
                "median": np.median(steps, axis=0).tolist(),
                "values": [getattr(middle, name) / middle.constant for name in _STEPS],
            }
        )
    tick(progress, "appendix A", len(spreads), len(spreads) + 1)
    lists = [np.exp(10.0 ** rng.uniform(-3, 0.7) * rng.standard_normal(rng.integers(2, 90))) for _ in range(10 * draws)]
    target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": tuple(shape), "bound": 0.5}
    numbers = {
        "setting": {"shape": shape, "epsilon": epsilon, "delta": delta},
        **judged(mechanisms.mvg(**target, calibration="published"), "MVG, published"),
        "rows": rows,
        "lists": len(lists),
        "least_harmonic": min(map(theory.harmonic_step, lists)),
        "trace_error": _trace_error(rng),
        "seed": seed,
    }
    return Result(numbers, {"chain.svg": _chain_picture(rows)})


def _trace_error(rng: np.random.Generator) -> float:
    """The largest relative difference of Tr(S x P) and Tr(S) Tr(P) over a few random covariances, computed in full."""
    worst = 0.0
    for _ in range(20):
        first, second = ((part := rng.standard_normal((size, size))) @ part.T for size in (6, 8))
        product = float(np.trace(first) * np.trace(second))
        worst = max(worst, abs(float(np.trace(np.kron(first, second))) - product) / product)
    return worst


def _chain_picture(rows: list[Numbers]) -> bytes:
    labels = ("E[L]", "(d)", "(e): appendix A", "(f): Theorem 3", "without β", "(h): $C_M$ D²")
    colour = MORE_COLOURS["mvg"]
    with style():
        figure = blank(8.6, 3.9)
        axes = figure.add_axes((0.09, 0.12, 0.88, 0.82))
        for row, dashes in zip(rows, ("-", (0, (5, 1.5)), (0, (2, 1.5)), (0, (1, 1))), strict=False):
            words = "equal eigenvalues" if row["spread"] == 0.0 else f"spread $e^{{{row['spread']:g}}}$"
            looks: dict[str, Any] = {"linestyle": dashes, "color": colour, "markersize": 4, "linewidth": 1.8}
            axes.plot(range(len(labels)), row["values"], "o", label=words, **looks)
        axes.set_xticks(range(len(labels)), labels, fontsize=8.5)
        axes.legend(frameon=False, fontsize=8.5, loc="lower left", title="eigenvalues of the covariances")
        quiet_axes(axes, log="y", grid="y")
        axes.set_ylabel("value / ($C_M$ D²)")
        return svg(figure)


def _query_parameters(settings: Settings) -> Numbers:
    counts = [3, 5, 10, 20, 50, 200, 800] if settings.quick else [3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 400, 800]
    return {
        "seed": settings.seed,
        "draws": 500 if settings.quick else 5000,
        "types": 20,
        "counts": counts,
        "epsilon": 1e-3,
        "delta": 1e-5,
    }


def _chain_parameters(settings: Settings) -> Numbers:
    return {
        "seed": settings.seed,
        "draws": 200 if settings.quick else 5000,
        "spreads": [0.0, 0.5, 1.0, 2.0],
        "shape": COUNT_QUERY["shape"],
        "epsilon": COUNT_QUERY["epsilon"],
        "delta": COUNT_QUERY["delta"],
    }


QUERIES = Experiment("dependent-queries", _query_parameters, make_queries)
MOMENTS = Experiment("moments", lambda _settings: {"ranks": [1, 2, 3, 5, 10, 30, 100, 300, 1000, 7921]}, make_moments)
CHAIN = Experiment("mvg-chain", _chain_parameters, make_chain)

"""The rank of noise: the covariance that an observer of R1SMG sees, and loss against rank at equal exact privacy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise import text
from lessnoise.mechanism import Radial, delta_of, gaussian_delta
from lessnoise.report import COLOURS, INK, blank, style, svg
from lessnoise_paper import theory
from lessnoise_paper.experiments.common import judged
from lessnoise_paper.experiments.drawing import GREY, VERDICT_COLOURS, note, quiet_axes
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lessnoise_paper.model import Numbers, Progress

SETTING: Numbers = {"dimension": 100, "epsilon": 1e-3, "delta": 1e-5}
"""Inside the paper's range, epsilon below 1/M; sensitivity 1."""

_PUBLISHED, _EXACT, _GAUSSIAN = COLOURS["r1smg-published"], COLOURS["r1smg"], COLOURS["analytic-gaussian"]
_LABEL = "R1SMG, published"


# The covariance, and the clue of section 4.


def make_covariance(
    folder: str | None,
    progress: Progress | None,
    *,
    seed: int,
    draws: int,
    points: int,
    dimension: int,
    epsilon: float,
    delta: float,
) -> Result:
    """The covariance of R1SMG noise with and without its secret direction, and what one coefficient protects."""
    tick(progress, "covariance", 0, 2)
    target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    published = mechanisms.r1smg(**target, calibration="published")
    eigenvalue = published.expected_loss
    rng = np.random.default_rng([seed, 4])
    # n = v sqrt(sigma_*) z, the paper's linear mapping with a uniform direction v.
    noise = rng.standard_normal((draws, dimension))
    noise *= math.sqrt(eigenvalue) * rng.standard_normal((draws, 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    covariance = noise.T @ noise / draws
    found = np.sort(np.linalg.eigvalsh(covariance))[::-1]
    tick(progress, "exact curves", 1, 2)
    single = (
        mechanisms.gaussian_scale(epsilon, delta) ** 2
    )  # the variance of one coefficient, which hides a change of 1
    needed = _exact_loss(dimension, epsilon, delta)
    losses = np.geomspace(0.03 * min(single, eigenvalue), 30.0 * needed, points)
    dense = np.geomspace(losses[0], losses[-1], 10 * points)  # for the closed forms
    numbers = {
        "setting": target,
        **judged(published, _LABEL),
        "eigenvalue": eigenvalue,
        "draws": draws,
        "seed": seed,
        "eigenvalues": found.tolist(),
        "rank": int(np.linalg.matrix_rank(covariance)),
        "entry_variance": eigenvalue / dimension,
        "trace": float(np.trace(covariance)),
        "single_variance": single,
        "fixed_other_change": 1.0,  # the outputs lie on two parallel lines, and which one tells the two answers apart
        "random_direction": _random_direction(single, dimension, epsilon),
        "needed": needed,
        "gaussian_loss": dimension * single,
        "curves": {
            "losses": losses.tolist(),
            "random": [_random_direction(loss, dimension, epsilon)["upper"] for loss in losses],
            "dense": dense.tolist(),
            "fixed": [gaussian_delta(1.0 / math.sqrt(loss), epsilon).upper for loss in dense],
            "gaussian": [gaussian_delta(math.sqrt(dimension / loss), epsilon).upper for loss in dense],
        },
    }
    return Result(numbers, {"clue.svg": _clue_picture(numbers)})


def _random_direction(variance: float, dimension: int, epsilon: float) -> Numbers:
    """Exact delta of one normal coefficient of this variance along a secret uniform direction."""
    return delta_of(Radial(1.0, 2.0, math.sqrt(2.0 * variance)), dimension, 1.0, epsilon).to_dict()


def _exact_loss(dimension: int, epsilon: float, delta: float) -> float:
    """The loss of R1SMG that keeps the target."""
    target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    return mechanisms.r1smg(**target, calibration="exact").expected_loss


def _clue_picture(numbers: Numbers) -> bytes:
    with style():
        figure = blank(9.4, 4.1)
        left, right = figure.add_axes((0.075, 0.15, 0.33, 0.68)), figure.add_axes((0.505, 0.15, 0.475, 0.68))
        _eigenvalues(left, numbers)
        _coefficients(right, numbers)
        return svg(figure)


def _eigenvalues(axes: Axes, numbers: Numbers) -> None:
    found, one = numbers["eigenvalues"], numbers["eigenvalue"]
    floor = 0.1 * numbers["entry_variance"]
    places = np.arange(1, len(found) + 1)
    axes.plot(places[1:], np.full(len(found) - 1, floor), "o", color=_PUBLISHED, markersize=2.5, clip_on=False)
    axes.plot(1, one, "o", color=_PUBLISHED, markersize=8)
    axes.plot(places, found, ".", color=_GAUSSIAN, markersize=5)
    axes.axhline(numbers["entry_variance"], color=INK, linewidth=0.8)
    note(axes, r"direction known: one, $\sigma_*$, and all others 0", (1, one), (8, -3), color=_PUBLISHED)
    note(axes, r"direction secret: all near $\sigma_*$/M", (0.12 * len(found), max(found)), (0, 9), color=_GAUSSIAN)
    quiet_axes(axes, log="y")
    axes.set_ylim(floor, 3.0 * one)
    axes.set_yticks([floor, numbers["entry_variance"], one], ["0", r"$\sigma_*$/M", r"$\sigma_*$"])
    axes.minorticks_off()
    axes.set_xlabel("eigenvalues of the covariance, the largest first")
    axes.set_title("Covariance of the noise", fontsize=10, fontweight="bold", loc="left")


def _coefficients(axes: Axes, numbers: Numbers) -> None:
    curves, claimed = numbers["curves"], numbers["setting"]["delta"]
    losses, dense = curves["losses"], curves["dense"]
    looks: dict[str, Any] = {"linewidth": 2.0}
    axes.plot(
        dense, curves["fixed"], color=GREY, linestyle=(0, (4, 2)), label="fixed direction, change along it", **looks
    )
    axes.plot(losses, curves["random"], color=_EXACT, label="secret random direction", **looks)
    axes.plot(dense, curves["gaussian"], color=_GAUSSIAN, label="independent noise in every entry", **looks)
    axes.axhline(1.0, color=VERDICT_COLOURS["fails"], linewidth=1.6, linestyle=":")
    note(axes, "fixed direction, any other change: δ = 1", (losses[-1], 1.0), (0, 4), ha="right")
    axes.axhline(claimed, color=INK, linewidth=1.0)
    note(axes, f"δ = {text.number(claimed)}", (losses[-1], claimed), (0, 4), ha="right")
    upper = numbers["exact"]["upper"]
    axes.plot(numbers["eigenvalue"], upper, "X", color=_PUBLISHED, markersize=10)
    note(axes, "R1SMG, published", (numbers["eigenvalue"], upper), (9, 4), color=_PUBLISHED)
    quiet_axes(axes, log="xy")
    axes.set_xlim(losses[0], losses[-1])
    axes.set_ylim(0.03 * claimed, 4.0)
    axes.set_xlabel("expected loss (logarithmic)")
    axes.set_ylabel(f"exact δ at ε = {text.number(numbers['setting']['epsilon'])}")
    axes.legend(frameon=False, fontsize=8.5, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, columnspacing=1.0)


# Loss against rank.


def make_ranks(
    folder: str | None,
    progress: Progress | None,
    *,
    seed: int,
    draws: int,
    ranks: list[int],
    dimension: int,
    epsilon: float,
    delta: float,
) -> Result:
    """Gaussian noise in a random subspace of each rank, calibrated exactly, beside a bound on noise of any rank."""
    target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    gaussian = theory.exact_analytic_loss(dimension, epsilon, delta)
    published = mechanisms.r1smg(**target, calibration="published")
    rng = np.random.default_rng([seed, 5])
    rows = []
    for done, rank in enumerate(ranks):
        tick(progress, f"rank {rank}", done, len(ranks) + 1)
        noise = theory.rank_noise(dimension, rank, epsilon, delta)
        again = theory.simulated_delta(dimension, rank, noise.expected_loss / rank, epsilon, draws=draws, rng=rng)
        rows.append(
            {
                "rank": rank,
                "loss": noise.expected_loss,
                "ratio": noise.expected_loss / gaussian,
                "exact": noise.delta(epsilon).to_dict(),
                "simulated": again.mean,
                "error": again.error,
                "low": noise.loss_quantile(0.001) / noise.expected_loss,
            }
        )
    tick(progress, "a bound for all ranks", len(ranks), len(ranks) + 1)
    numbers = {
        "setting": target,
        **judged(published, _LABEL),
        "gaussian": gaussian,
        "published_ratio": published.expected_loss / gaussian,
        "bound": theory.any_rank_bound(dimension, epsilon, delta) / gaussian,
        "rows": rows,
        "draws": draws,
        "seed": seed,
    }
    return Result(numbers, {"loss-against-rank.svg": _ranks_picture(numbers)})


def _ranks_picture(numbers: Numbers) -> bytes:
    rows = numbers["rows"]
    ranks = [row["rank"] for row in rows]
    lowest = 0.1 * numbers["published_ratio"]
    with style():
        figure = blank(8.6, 4.3)
        axes = figure.add_axes((0.10, 0.13, 0.87, 0.82))
        axes.axhspan(lowest, numbers["bound"], color="#E4E4E4", linewidth=0)
        axes.axhline(1.0, color=_GAUSSIAN, linewidth=1.6)
        axes.plot(ranks, [row["ratio"] for row in rows], "o-", color=_EXACT, linewidth=2, markersize=6)
        for row in rows:
            note(axes, text.number(row["ratio"], 3), (row["rank"], row["ratio"]), (4, 5))
        axes.plot(1, numbers["published_ratio"], "X", color=_PUBLISHED, markersize=10)
        exact, claimed = numbers["exact"]["upper"], numbers["setting"]["delta"]
        words = f"R1SMG, published: δ = {text.at_most(exact, 3)}, not {text.number(claimed)}"
        note(axes, words, (1, numbers["published_ratio"]), (9, -3), color=_PUBLISHED)
        inside = ("axes fraction", "data")
        note(
            axes,
            "no additive noise that keeps the promise is here, whatever its rank (proved)",
            (0.5, 0.02),
            (0, 0),
            inside,
            ha="center",
            color="#444444",
        )
        note(axes, "the Gaussian, full rank", (0.99, 1.0), (0, 16), inside, ha="right", color=_GAUSSIAN)
        quiet_axes(axes, log="xy")
        axes.set_ylim(lowest, 10.0 * max(row["ratio"] for row in rows))
        axes.set_xlim(0.85, 1.6 * ranks[-1])
        axes.set_xticks(ranks, [str(rank) for rank in ranks])
        axes.minorticks_off()
        axes.set_xlabel(f"rank of the noise, of M = {numbers['setting']['shape']}")
        axes.set_ylabel("expected loss / Gaussian's loss")
        return svg(figure)


def _covariance_parameters(settings: Settings) -> Numbers:
    draws, points = (40_000, 13) if settings.quick else (200_000, 41)
    return {**SETTING, "seed": settings.seed, "draws": draws, "points": points}


def _rank_parameters(settings: Settings) -> Numbers:
    ranks = [1, 2, 3, 5, 10, 50, 100] if settings.quick else [1, 2, 3, 4, 5, 7, 10, 20, 50, 100]
    return {**SETTING, "seed": settings.seed, "draws": 200_000 if settings.quick else 1_000_000, "ranks": ranks}


COVARIANCE = Experiment("covariance", _covariance_parameters, make_covariance)
RANKS = Experiment("loss-against-rank", _rank_parameters, make_ranks)

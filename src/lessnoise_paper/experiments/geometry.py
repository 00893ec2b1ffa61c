"""The pictures of the paper's geometry: the angle of its proof, the null space, and an attack that needs neither."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise.audit import audit
from lessnoise.report import COLOURS, INK, blank, style, svg
from lessnoise_paper import theory
from lessnoise_paper.experiments.common import COUNT_QUERY, judged
from lessnoise_paper.experiments.drawing import VERDICT_COLOURS, note, quiet_axes
from lessnoise_paper.experiments.triangles import circumcircles_picture, sides_of_triangles
from lessnoise_paper.model import Experiment, Result, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers, Progress

    Array = NDArray[np.float64]

_PUBLISHED, _GAUSSIAN = COLOURS["r1smg-published"], COLOURS["analytic-gaussian"]
_SHOWN = 1500  # points of the scatter


def _published(setting: Numbers) -> Mechanism:
    return mechanisms.r1smg(**{**setting, "shape": tuple(setting["shape"])}, calibration="published")


# The angle of the proof (figure 1).


def make_angle(
    folder: str | None, progress: Progress | None, *, seed: int, draws: int, **setting: float | str | list[int]
) -> Result:
    """The angle at the output between the two noises that would lead to it, in seeded draws of published R1SMG."""
    tick(progress, "angles", 0, 1)
    mechanism = _published(setting)
    delta, epsilon = float(setting["delta"]), float(setting["epsilon"])  # type: ignore[arg-type]
    cells, shift = mechanism.dimension, mechanism.sensitivity
    theta0 = math.acos(math.sqrt(theory.psi(cells, delta)))
    lengths, angles = _angles(mechanism, draws, np.random.default_rng([seed, 1]))
    near = np.abs(angles - math.pi / 2) < theta0
    numbers = {
        "setting": setting,
        **judged(mechanism, "R1SMG, published"),
        "theta0": theta0,
        "lemma_bound": theory.angle_bound(theta0, cells),
        "lemma_exact": theory.angle_probability(theta0, cells),
        "event_bound": theory.proof_event_bound(epsilon),
        "event_needed": 1.0 - delta,
        "draws": draws,
        "event_draws": int(near.sum()),
        "median_angle": float(np.median(angles)),
        "median_length": float(np.median(lengths)) / shift,
        "sides": sides_of_triangles(draws, np.random.default_rng([seed, 2])),
        "seed": seed,
        "points": [[float(a), float(b)] for a, b in zip(lengths[:_SHOWN] / shift, angles[:_SHOWN], strict=True)],
    }
    return Result(numbers, {"angle.svg": _angle_picture(numbers), "circumcircles.svg": circumcircles_picture(numbers)})


def _angles(mechanism: Mechanism, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Lengths of the noise n, and angles between n and n + v for a shift v of full length."""
    shift = mechanism.sensitivity
    radius, along = _drawn(mechanism, draws, rng)
    other = np.sqrt(radius**2 + 2.0 * radius * shift * along + shift**2)
    cosine = (radius + shift * along) / other
    return radius, np.arccos(np.clip(cosine, -1.0, 1.0))


def _drawn(mechanism: Mechanism, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Lengths r of noise n = r u, and the first coordinates c of its uniform directions u.

    Only the part of n along a shift v of length D matters: n.v = r D c.
    """
    radius = math.sqrt(mechanism.expected_loss) * np.abs(rng.standard_normal(count))
    normal = rng.standard_normal(count)
    return radius, normal / np.sqrt(normal**2 + rng.chisquare(mechanism.dimension - 1, count))


def _angle_picture(numbers: Numbers) -> bytes:
    points = np.array(numbers["points"])
    theta0 = math.degrees(numbers["theta0"])
    with style():
        figure = blank(8.6, 3.9)
        sketch, axes = figure.add_axes((0.01, 0.06, 0.34, 0.84)), figure.add_axes((0.46, 0.16, 0.52, 0.74))
        _triangles(sketch)
        axes.axhspan(90.0 - theta0, 90.0 + theta0, color=VERDICT_COLOURS["holds"], alpha=0.35, linewidth=0)
        axes.plot(points[:, 0], np.degrees(points[:, 1]), ".", color=_PUBLISHED, markersize=3, alpha=0.7)
        quiet_axes(axes, log="xy")
        axes.set_ylim(1e-2, 300.0)
        axes.set_yticks([0.01, 0.1, 1, 10, 90], ["0.01°", "0.1°", "1°", "10°", "90°"])
        axes.set_xlabel("length of the noise / sensitivity (logarithmic)")
        axes.set_ylabel("angle at the output")
        words, beside = "where the proof needs it", ("axes fraction", "data")
        note(axes, words, (0.98, 90.0), (0, 9), beside, ha="right", fontsize=9)
        axes.annotate("where it is", (0.5, 0.30), xycoords="axes fraction", fontsize=9, color=_PUBLISHED)
        return svg(figure)


def _triangles(axes: Axes) -> None:
    """The triangle as the proof draws it, and as it is for long noise."""
    for left, apex, title in ((0.0, (0.55, 0.62), "as the proof has it"), (1.55, (2.05, 3.1), "as it mostly is")):
        first, second = (left, 0.0), (left + 1.0, 0.0)
        axes.plot(*zip(first, second, strict=True), color=INK, linewidth=2.2)
        axes.plot(*zip(first, apex, strict=True), color=_PUBLISHED, linewidth=1.6)
        axes.plot(*zip(second, apex, strict=True), color=_GAUSSIAN, linewidth=1.6)
        axes.plot(*apex, "o", color=INK, markersize=5)
        for label, at, up in (("f(x)", first, -13), ("f(x')", second, -13), ("output", apex, 7)):
            note(axes, label, at, (0, up), ha="center")
        axes.annotate(title, (left + 0.5, -0.62), ha="center", fontsize=9)
    axes.set_xlim(-0.35, 2.9)
    axes.set_ylim(-0.8, 3.55)
    axes.set_axis_off()


# The null space, and an attack that does not need it (figure 3).

_CIRCLE_DIRECTION = (-1.0 / math.sqrt(5.0), 2.0 / math.sqrt(5.0))  # v_1 of section 5.4
_SPHERE_DIRECTION = (1.0 / math.sqrt(3.0), -1.0 / math.sqrt(3.0), 1.0 / math.sqrt(3.0))  # v_2 of section 5.4


def make_null_space(
    folder: str | None, progress: Progress | None, *, seed: int, samples: int, **setting: float | str | list[int]
) -> Result:
    """Guessed vectors never lie in the null space; whoever compares two distances needs none."""
    mechanism = _published(setting)
    rng = np.random.default_rng([seed, 3])
    guesses = 10_000
    hits = int(np.sum(rng.standard_normal((guesses, 3)) @ np.array(_SPHERE_DIRECTION) == 0.0))
    tick(progress, f"attack on {samples:,} releases", 0, 1)
    found = audit(mechanism, np.zeros(mechanism.shape), attacks=["nearest"], samples=samples, rng=rng)
    scores = [_scores(mechanism, sign, 4000, rng) for sign in (1.0, -1.0)]
    low, high = np.quantile(np.concatenate(scores), [0.05, 0.95])
    edges = np.linspace(float(low), float(high), 41)
    numbers = {
        "setting": setting,
        **judged(mechanism, "R1SMG, published"),
        "guesses": guesses,
        "guesses_in_null_space": hits,
        "audit": found.to_dict(),
        "edges": edges.tolist(),
        "of_value": np.histogram(scores[0], edges)[0].tolist(),
        "of_neighbour": np.histogram(scores[1], edges)[0].tolist(),
        "nearer_to_its_own": float(np.mean(np.concatenate([scores[0] > 0.0, scores[1] < 0.0]))),
        "seed": seed,
    }
    return Result(numbers, {"null-space.svg": _null_space_picture(numbers)})


def _scores(mechanism: Mechanism, sign: float, count: int, rng: np.random.Generator) -> Array:
    """M ln(distance to the neighbour / distance to the value) of releases of the value (sign 1) or the neighbour."""
    radius, along = _drawn(mechanism, count, rng)
    shift = mechanism.sensitivity
    ratio = np.log1p(2.0 * shift * along / radius + (shift / radius) ** 2)
    return sign * 0.5 * mechanism.dimension * ratio


def _null_space_picture(numbers: Numbers) -> bytes:
    with style():
        figure = blank(9.4, 3.5)
        _circle(figure.add_axes((0.01, 0.08, 0.25, 0.78)))
        _sphere(figure.add_axes((0.26, 0.0, 0.30, 0.94), projection="3d"))
        axes = figure.add_axes((0.61, 0.17, 0.375, 0.66))
        edges = np.array(numbers["edges"])
        for key, colour, label in (
            ("of_value", _PUBLISHED, "releases of x"),
            ("of_neighbour", _GAUSSIAN, "of its neighbour x'"),
        ):
            axes.stairs(numbers[key], edges, color=colour, fill=True, alpha=0.35)
            axes.stairs(numbers[key], edges, color=colour, linewidth=1.6, label=label)
        axes.axvline(0.0, color=INK, linewidth=1.0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("M ln(distance to f(x') / distance to f(x))")
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
        axes.set_title("Which answer is nearer?", fontsize=10, fontweight="bold", loc="left")
        return svg(figure)


def _circle(axes: Axes) -> None:
    turn = np.linspace(0.0, 2.0 * math.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color="#666666", linewidth=1.2)
    x, y = _CIRCLE_DIRECTION
    axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": _PUBLISHED, "linewidth": 2.2})
    axes.annotate("v", (x, y), (-12, 2), textcoords="offset points", fontsize=11, color=_PUBLISHED)
    axes.plot([-1.35 * y, 1.35 * y], [1.35 * x, -1.35 * x], color=_GAUSSIAN, linestyle=(0, (4, 2)), linewidth=1.6)
    axes.plot([-y, y], [x, -x], "o", color=_GAUSSIAN, markersize=6)
    axes.set_title("Null space of v, M = 2", fontsize=10, fontweight="bold")
    axes.set_aspect("equal")
    axes.set_axis_off()


def _sphere(axes: Any) -> None:  # noqa: ANN401
    around, up = np.meshgrid(np.linspace(0.0, 2.0 * math.pi, 25), np.linspace(0.0, math.pi, 13))
    axes.plot_wireframe(
        np.cos(around) * np.sin(up), np.sin(around) * np.sin(up), np.cos(up), color="#999999", linewidth=0.35
    )
    direction = np.array(_SPHERE_DIRECTION)
    first = np.cross(direction, [0.0, 0.0, 1.0])
    first /= np.linalg.norm(first)
    second = np.cross(direction, first)
    turn = np.linspace(0.0, 2.0 * math.pi, 120)
    ring = np.outer(np.cos(turn), first) + np.outer(np.sin(turn), second)
    axes.plot(*ring.T, color=_GAUSSIAN, linewidth=2.0)
    axes.plot(*np.array([[0, 0, 0], 1.25 * direction]).T, color=_PUBLISHED, linewidth=2.4)
    axes.text(*(1.4 * direction), "v", color=_PUBLISHED, fontsize=11)
    axes.set_title("M = 3", fontsize=10, fontweight="bold")
    axes.set_box_aspect((1, 1, 1), zoom=1.35)
    axes.view_init(elev=12.0, azim=-8.0)
    axes.set_axis_off()


ANGLE = Experiment(
    "angle",
    lambda settings: {**COUNT_QUERY, "seed": settings.seed, "draws": 100_000 if settings.quick else 1_000_000},
    make_angle,
)
NULL_SPACE = Experiment(
    "null-space",
    lambda settings: {**COUNT_QUERY, "seed": settings.seed, "samples": 20_000 if settings.quick else 200_000},
    make_null_space,
)

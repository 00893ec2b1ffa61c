"""The drawings of the paper's Figures 1(b, c) and 2(a-d), to scale: circumcircles, and noises that meet or do not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import text
from lessnoise.report import COLOURS, INK, blank, style, svg
from lessnoise_paper import theory
from lessnoise_paper.experiments.drawing import GREY, SOFT, VERDICT_COLOURS, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lessnoise_paper.model import Numbers

    Place = tuple[float, float]

_PUBLISHED, _GAUSSIAN = COLOURS["r1smg-published"], COLOURS["analytic-gaussian"]
_FIRST, _SECOND = (0.0, 0.0), (1.0, 0.0)  # f(x) and f(x'), a change of length 1 apart


def sides_of_triangles(draws: int, rng: np.random.Generator) -> Numbers:
    """Random outputs s around f(x) and f(x'): how close the sum of their two sides comes to each bound."""
    radius, turn = np.exp(rng.uniform(-6.0, 6.0, draws)), rng.uniform(0.0, 2.0 * math.pi, draws)
    across, up = radius * np.cos(turn), radius * np.sin(turn)
    first, second = np.hypot(across, up), np.hypot(across - 1.0, up)
    # The angle at s, from the cross product and the inner product of its two sides.
    theta = np.arctan2(np.abs(up), across * (across - 1.0) + up**2)
    usable = (theta > 1e-6) & (theta < math.pi - 1e-6)
    total, theta = (first + second)[usable], theta[usable]
    return {
        "draws": int(usable.sum()),
        "of_published": float((total * np.sin(theta) / 2.0).max()),  # 2 D/sin(theta)
        "of_longest": float((total * np.sin(theta / 2.0)).max()),  # D/sin(theta/2)
    }


# Figure 1(b, c).


def circumcircles_picture(numbers: Numbers) -> bytes:
    """Circumcircles for an acute and an obtuse angle, and the outputs for which the proof holds."""
    with style():
        figure = blank(9.4, 3.5)
        acute, obtuse, region = (figure.add_axes((at, 0.02, 0.32, 0.84)) for at in (0.0, 0.34, 0.68))
        _circumcircle(acute, "(b) angle below 90°", 60.0, 72.0)
        _circumcircle(obtuse, "(c) angle above 90°", 120.0, 78.0)
        _region(region, numbers)
        return svg(figure)


def _circumcircle(axes: Axes, title: str, degrees: float, turn: float) -> None:
    theta = math.radians(degrees)
    radius = 0.5 / math.sin(theta)  # the law of sines
    centre = (0.5, 0.5 / math.tan(theta))
    apex = (centre[0] + radius * math.cos(math.radians(turn)), centre[1] + radius * math.sin(math.radians(turn)))
    _circle(axes, centre, radius, GREY)
    far = (centre[0] + radius, centre[1])
    axes.plot([centre[0], far[0]], [centre[1], far[1]], ":", color=SOFT, linewidth=1.2)
    note(axes, "d/2", (0.5 * (centre[0] + far[0]), centre[1]), (0, 3), ha="center", color=SOFT)
    _triangle(axes, apex)
    total = math.dist(apex, _FIRST) + math.dist(apex, _SECOND)
    words = (
        f"θ = {degrees:.0f}°: sides {total:.2f} D together,\n"
        f"at most {theory.longest_sides(theta):.2f} D; the paper: 2d = {theory.published_sides(theta):.2f} D"
    )
    _frame(axes, title, words)


def _region(axes: Axes, numbers: Numbers) -> None:
    """Outputs with an angle within theta0 of a right angle lie between two arcs, on either side of the change."""
    theta0 = numbers["theta0"]
    outer, inner = (_arc(0.5 * math.pi - sign * theta0) for sign in (1.0, -1.0))
    for side in (1.0, -1.0):
        band = np.concatenate([outer, inner[::-1]]) * [1.0, side]
        axes.fill(band[:, 0], band[:, 1], color=VERDICT_COLOURS["holds"], alpha=0.55, linewidth=0)
    axes.plot(*zip(_FIRST, _SECOND, strict=True), color=INK, linewidth=2.2)
    for label, at in (("f(x)", _FIRST), ("f(x')", _SECOND)):
        note(axes, label, at, (0, -13), ha="center")
    axes.annotate(
        "", (1.20, 1.02), (0.62, 0.12), arrowprops={"arrowstyle": "->", "color": _PUBLISHED, "linewidth": 1.8}
    )
    words = f"half of the outputs:\nover {text.at_least(numbers['median_length'], 2)} D away"
    note(axes, words, (1.02, 1.0), (0, 0), color=_PUBLISHED, va="center", ha="right")
    _frame(axes, "Where the proof needs the output", f"angle within {text.number(math.degrees(theta0), 3)}° of 90°")


def _arc(theta: float) -> NDArray[np.float64]:
    """Points above the change at which it is seen under the angle theta."""
    radius, height = 0.5 / math.sin(theta), 0.5 / math.tan(theta)
    start = math.atan2(-height, 0.5)
    turn = np.linspace(start, math.pi - start, 200)
    return np.column_stack([0.5 + radius * np.cos(turn), height + radius * np.sin(turn)])


# Figure 2.


def closing_picture(numbers: Numbers) -> bytes:
    """Noises of typical length that meet (a, d), and such as do not (b, c), each at its own epsilon."""
    classic, r1smg = numbers["meeting"]["classic"], numbers["meeting"]["r1smg"]
    # Lengths in units of the change: meeting/(2 epsilon) for the classic Gaussian, half the root of meeting/epsilon for
    # R1SMG; both are 1/2 where two noises just meet.
    panels = (
        ("(a) classic Gaussian", 0.5 * classic, 1.0, _GAUSSIAN),
        ("(b) classic Gaussian", 2.0 * classic, 0.25, _GAUSSIAN),
        ("(c) R1SMG", 2.0 * r1smg, 0.5 / math.sqrt(2.0), _PUBLISHED),
        ("(d) R1SMG", 0.25 * r1smg, 1.0, _PUBLISHED),
    )
    with style():
        figure = blank(9.4, 2.6)
        for place, (title, epsilon, length, colour) in enumerate(panels):
            axes = figure.add_axes((0.005 + 0.25 * place, 0.02, 0.24, 0.80))
            for centre in (_FIRST, _SECOND):
                _circle(axes, centre, length, colour)
            if length > 0.5:
                apex = (0.5, math.sqrt(length**2 - 0.25))
                _triangle(axes, apex)
                axes.plot([0.5, 0.5], [0.0, apex[1]], ":", color=SOFT, linewidth=1.0)
            else:
                axes.plot(*zip(_FIRST, _SECOND, strict=True), color=INK, linewidth=2.2)
                for label, at in (("f(x)", _FIRST), ("f(x')", _SECOND)):
                    note(axes, label, at, (0, -13), ha="center")
            words = "meet" if length > 0.5 else "do not meet"
            _frame(axes, title, f"ε = {text.number(epsilon, 3)}: typical noises {words}", low=-1.05, high=1.15)
        return svg(figure)


# Pieces.


def _triangle(axes: Axes, apex: Place) -> None:
    axes.plot(*zip(_FIRST, _SECOND, strict=True), color=INK, linewidth=2.2)
    axes.plot(*zip(_FIRST, apex, strict=True), color=_PUBLISHED, linewidth=1.6)
    axes.plot(*zip(_SECOND, apex, strict=True), color=_GAUSSIAN, linewidth=1.6)
    axes.plot(*apex, "o", color=INK, markersize=5)
    for label, at, up in (("f(x)", _FIRST, -13), ("f(x')", _SECOND, -13), ("s", apex, 6)):
        note(axes, label, at, (0, up), ha="center")


def _circle(axes: Axes, centre: Place, radius: float, colour: str) -> None:
    turn = np.linspace(0.0, 2.0 * math.pi, 200)
    axes.plot(centre[0] + radius * np.cos(turn), centre[1] + radius * np.sin(turn), color=colour, linewidth=1.2)


def _frame(axes: Axes, title: str, words: str, low: float = -0.95, high: float = 1.25) -> None:
    axes.set_title(title, fontsize=10, fontweight="bold")
    axes.annotate(words, (0.5, low + 0.02), ha="center", va="top", fontsize=8.5, annotation_clip=False)
    axes.set_xlim(-0.75, 1.75) if high > 1.2 else axes.set_xlim(-1.1, 2.1)
    axes.set_ylim(low - 0.35, high)
    axes.set_aspect("equal")
    axes.set_axis_off()

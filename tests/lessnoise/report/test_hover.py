"""Values under the pointer: every drawn point and bar tells its own, at its own place."""

import re

import numpy as np
import pytest

from lessnoise.report import blank, png, svg

_SPOT = re.compile(r'<(circle|rect) ([^>]*) class="value" fill="none" pointer-events="all"><title>([^<]*)</title>')


def spots(drawing):
    """Kind, attributes and words of every shape that shows a value."""
    return [
        (kind, {name: float(value) for name, value in re.findall(r'(\w+)="([\d.-]+)"', where)}, words)
        for kind, where, words in _SPOT.findall(drawing.decode())
    ]


@pytest.fixture
def axes():
    return blank(4.0, 3.0).add_axes((0.25, 0.5, 0.5, 0.25))  # 72 to 216 points from the left, 54 to 108 from the top


def test_points_of_a_line_stand_where_they_are_drawn(axes):
    axes.plot([1.0, 10.0, 100.0], [0.5, 0.25, 1e-7], label="R & D")
    axes.set(xscale="log", xlim=(1, 100), ylim=(0, 1), xlabel="entries M (logarithmic)", ylabel="delta")
    found = spots(svg(axes.figure))
    assert [words for _, _, words in found] == [
        "R &amp; D: entries M 1, delta 0.5",
        "R &amp; D: entries M 10, delta 0.25",
        "R &amp; D: entries M 100, delta 1e-7",
    ]
    for (kind, where, _), x, y in zip(found, (72, 144, 216), (81, 94.5, 108), strict=True):
        assert kind == "circle"
        assert (where["cx"], where["cy"]) == pytest.approx((x, y), abs=0.06)


def test_bars_and_rows_tell_their_names(axes):
    axes.barh([0, 1], [2.0, 4.0], height=0.5)
    axes.plot([3.0], [1.0], "D")
    axes.set_yticks([0, 1], ["Laplace", "R1SMG\nM = 3"])
    axes.set(xlim=(0, 4), ylim=(1.5, -0.5), xlabel="loss")
    bars = {words: where for kind, where, words in spots(svg(axes.figure)) if kind == "rect"}
    assert list(bars) == ["Laplace: loss 2", "R1SMG, M = 3: loss 4"]
    assert bars["Laplace: loss 2"] == pytest.approx({"x": 72, "y": 60.75, "width": 72, "height": 13.5}, abs=0.06)
    assert [words for kind, _, words in spots(svg(axes.figure)) if kind == "circle"] == ["R1SMG, M = 3: loss 3"]


def test_shares_are_in_percent_and_what_lies_outside_is_left_out(axes):
    axes.plot([0.0, 1.0, 2.0], [0.1, 0.973, 5.0])
    axes.axhline(0.5)
    axes.set(xlim=(0, 2), ylim=(0, 1), ylabel="accuracy")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    assert [words for _, _, words in spots(svg(axes.figure))] == ["0, accuracy 10%", "1, accuracy 97.3%"]


def test_axes_share_names_and_legends_give_them():
    figure = blank(4.0, 3.0)
    above, below = figure.subplots(2, 1, sharex=True)
    for axes in (above, below):
        axes.plot([1.0], [0.5], "o", label="key")
    below.set(xlabel="epoch", ylabel="accuracy")
    below.legend(*below.get_legend_handles_labels()[:1], ["DP-SGD: (1, 1e-5)-DP"])
    assert [words for _, _, words in spots(svg(figure))] == ["DP-SGD: epoch 1, 0.5", "DP-SGD: epoch 1, accuracy 0.5"]


def test_clouds_and_sketches_are_silent_and_dense_lines_thinned(axes):
    axes.plot(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001))
    axes.plot(np.linspace(0, 1, 1001), np.zeros(1001), ".")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    found = spots(svg(axes.figure))
    assert 15 < len(found) <= np.hypot(144, 54) / 7.0 + 1
    axes.set_axis_off()
    assert spots(svg(axes.figure)) == []


def test_the_picture_stays_the_same_and_has_a_twin_of_pixels(axes):
    axes.plot([0.0, 1.0], [0.0, 1.0])
    drawing = svg(axes.figure)
    assert drawing == svg(axes.figure)
    assert drawing.png() == png(axes.figure, 150)
    assert drawing.png() != png(axes.figure)

"""What all pictures share: one colour and one line style per mechanism, fonts, and the way to bytes."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

from lessnoise.report.hover import with_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS: dict[str, tuple[str, Any]] = {
    # Paul Tol's "muted" scheme, safe for colour-blind readers; reds are the published calibrations.
    "least-noise": ("#222222", (0, (2, 3))),
    "laplace": ("#117733", "-"),
    "geometric": ("#885522", (0, (3, 1.5))),
    "least-count-noise": ("#777777", (0, (1, 2))),
    "l2": ("#332288", (0, (5, 2))),
    "analytic-gaussian": ("#0077BB", "-"),
    "zhao-gaussian-1": ("#44AA99", "-."),
    "zhao-gaussian-2": ("#999933", ":"),
    "classic-gaussian": ("#DDAA33", "-"),
    "discrete-gaussian": ("#88CCEE", (0, (1, 1))),
    "r1smg": ("#AA4499", "-"),
    "product-noise": ("#EE7733", (0, (4, 1, 1, 1))),
    "r1smg-published": ("#CC6677", (0, (6, 1.5))),
    "r1smg-published-paper": ("#882255", "-"),
}
COLOURS = {name: colour for name, (colour, _) in _LOOKS.items()}
"""One colour per mechanism, in every picture."""

MORE_COLOURS = {
    **COLOURS,
    "mvg": "#999933",
    "mvg-code": "#999933",
    "mvg-published": "#999933",
    "mgm": "#88CCEE",
    "dawa": "#44AA99",
    "dawa-dpcomp": "#44AA99",
    "hb": "#661100",
    "hb-gaussian": "#CC8866",
    "mod-sulq": "#AAAAAA",
    "mod-sulq-exact": "#AAAAAA",
    "wishart": "#EE7733",
    "ppca": "#117733",
}
"""The same with the mechanisms of single studies; some share a colour with one that never meets them."""

LINES = {name: line for name, (_, line) in _LOOKS.items()}
"""One line style per mechanism, for readers who do not see the colours."""

INK, GRID = "#222222", "#D8D8D8"
_FINE = 150  # dots to the inch
_STYLE = {
    "font.size": 10.0,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "text.usetex": False,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "svg.hashsalt": "lessnoise",
}


def style() -> Any:  # noqa: ANN401
    """A context in which figures have the project's look."""
    from matplotlib import rc_context

    return rc_context(_STYLE)  # type: ignore[arg-type]


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor="white")


def notebook_figure(width: float, height: float) -> Figure:
    """An empty figure that shows itself in a notebook, whatever backend is active there."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            return png(self)

    return NotebookFigure(figsize=(width, height), facecolor="white", layout="constrained")


def literal(words: object, most: int = 60) -> str:
    r"""Text of a user's, such as the name of a column, as it is: no formulas, no control characters, not endless.

    >>> literal("fare_$ and tip_$")
    'fare_\\$ and tip_\\$'
    """
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(words))
    return (shown if len(shown) <= most else shown[: most - 1] + "…").replace("$", r"\$")


class Drawing(bytes):
    """A picture as SVG, which still knows its figure, so that it can be had as pixels too."""

    figure: Figure

    def png(self) -> bytes:
        """The same picture as PNG."""
        return png(self.figure, _FINE)


def svg(figure: Figure) -> Drawing:
    """The same figure gives the same bytes. Its lines and bars tell their values under the pointer."""
    image = _saved(figure, format="svg", metadata={"Date": None, "Creator": None}).decode()
    drawing = Drawing(with_values(image, figure).encode())
    drawing.figure = figure
    return drawing


def png(figure: Figure, dots: int = 100) -> bytes:
    """The same figure gives the same bytes; ``dots`` to the inch."""
    return _saved(figure, format="png", dpi=dots, metadata={"Software": None}, pil_kwargs={"compress_level": 3})


def _saved(figure: Figure, **options: Any) -> bytes:  # noqa: ANN401
    buffer = io.BytesIO()
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks becomes a box
        figure.savefig(buffer, **options)
    return buffer.getvalue()

"""What the pictures of these pages share: ink, style, and the way to a file beside the script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

INK, SOFT, GRID = "#222222", "#5F5F66", "#DDDDDD"


def save(draw: Callable[[], Figure], name: str) -> None:
    """Draw in the common style and write the picture."""
    style: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#888888",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": "#444444",
        "ytick.color": "#444444",
    }
    with rc_context(style):
        draw().savefig(Path(__file__).with_name(name), metadata={"Software": None})

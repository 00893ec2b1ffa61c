"""How objects show themselves in notebooks. Tables are made in ``report/notebook.py``, pictures in ``curves.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Shown:
    """Has a table for notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from lessnoise.report.notebook import to_html

        return to_html(self)


class Plotted(Shown):
    """Has a table and a picture."""

    __slots__ = ()

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw on ``ax``, or on a new figure; returns the figure. No global state of matplotlib is touched."""
        from lessnoise.report.curves import picture

        return picture(self, ax)

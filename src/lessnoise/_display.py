"""How objects show themselves. Tables and pictures are made in ``report``, which registers them here."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@functools.singledispatch
def to_html(shown: object) -> str:
    """A table of an object of ours, for notebooks.

    >>> from lessnoise import Guarantee
    >>> "1.0001" in to_html(Guarantee(1.00001, 0))
    True
    """
    raise TypeError(f"no table is known for {type(shown).__name__}")


@functools.singledispatch
def picture(shown: object, axes: Axes | None = None) -> Figure:
    """A drawing of an object of ours, on ``axes`` or on a figure of its own."""
    raise TypeError(f"no picture is known for {type(shown).__name__}")


@functools.singledispatch
def to_png(shown: object) -> bytes:
    """The picture that is saved beside an object of ours."""
    raise TypeError(f"no picture file is known for {type(shown).__name__}")


class Shown:
    """Has a table for notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return to_html(self)


class Plotted(Shown):
    """Has a table and a picture."""

    __slots__ = ()

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw on ``ax``, or on a new figure; returns the figure. No global state of matplotlib is touched.

        >>> import lessnoise as ln
        >>> visits = ln.Stream(periods=8, epsilon=1)
        >>> total = visits.push(120)
        >>> visits.plot()
        <NotebookFigure size 640x400 with 1 Axes>
        """
        return picture(self, ax)


class Facts(NamedTuple):
    """What a table for notebooks says: a title, names with values, and lines below a head. All of it is plain text."""

    title: str
    rows: Sequence[tuple[str, str]]
    head: tuple[str, ...] = ()
    lines: Sequence[tuple[str, ...]] = ()
    good: bool | None = None
    """Whether what was claimed or asked holds; None where nothing was."""


class Listed(Shown):
    """Says itself what its table has."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> Facts:
        """What the table for notebooks says."""


class Estimates(NamedTuple):
    """What a picture of numbers beside each other says. All of it is plain text and released numbers."""

    title: str
    label: str
    """What the numbers are, with their unit."""
    names: Sequence[str]
    values: Sequence[float]
    intervals: Sequence[tuple[float, float]] = ()
    mark: tuple[str, float] | None = None
    """A line across, such as what noise alone would give, and its name."""
    along: str = ""
    """Of numbers in an order: what their names are. They stand beside each other then, instead of below."""
    logarithmic: bool = False


class Lines(NamedTuple):
    """What a picture of lines says: each has a name, places and numbers."""

    title: str
    along: str
    label: str
    lines: Sequence[tuple[str, Sequence[float], Sequence[float]]]
    mark: tuple[str, float] | None = None
    logarithmic: bool = False
    """Both axes; the places are then bands or sizes, by powers of 2."""


class Cells(NamedTuple):
    """What a picture of a matrix says: a cell for each number, above and below zero in two colours."""

    title: str
    label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]


class Charted(Plotted):
    """Says itself what its picture has."""

    __slots__ = ()

    @abstractmethod
    def _chart(self) -> Estimates | Lines | Cells:
        """What the picture for notebooks says."""

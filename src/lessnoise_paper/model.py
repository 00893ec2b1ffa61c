"""What the report is made of: computations, and the sections that show them.

A :class:`Work` is computed once and stored. A :class:`Section` is one figure or table of the report: it turns the
stored numbers of its work into words, pictures and tables, and computes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Numbers = dict[str, Any]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is computed, with which seed, and where the public files are.

    ``quick`` takes embedded data and few repetitions. ``data`` is a folder; None leaves the choice to $LESSNOISE_DATA.
    """

    quick: bool = False
    seed: int = 0
    data: str | None = None


@dataclass(frozen=True, eq=False)
class Made:
    """The result of a computation: numbers ready for JSON, and pictures by file name (.svg or .png)."""

    numbers: Numbers
    pictures: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """One computation. ``make(folder, progress, **parameters(settings))`` runs it.

    The parameters are plain values: together with the code they decide the result, so they decide whether a stored
    result is still good.
    """

    name: str
    parameters: Callable[[Settings], Numbers]
    make: Callable[..., Made]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a section. ``alt`` says its main number; ``failing`` frames what does not keep its claim.

    ``small`` ones stand side by side, each with a ``title``.
    """

    file: str
    alt: str
    caption: str
    small: bool = False
    title: str = ""
    failing: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of "claimed beside exact"."""

    what: str
    claimed: str
    exact: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Words:
    """What a section says. ``privacy`` is the exact privacy of what is shown, and is never empty.

    ``fails`` says that something shown does not keep its claim. ``headline`` is a sentence for the summary.
    """

    setting: str
    paper: str
    ours: str
    privacy: str
    shows: str
    pictures: tuple[Picture, ...] = ()
    tables: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    fails: bool = False
    headline: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One figure or table: its name for ``--only``, its title, its place in the paper, and its work."""

    name: str
    title: str
    place: str
    work: str
    write: Callable[[Numbers], Words]

    @property
    def ours(self) -> bool:
        """Not in the paper."""
        return not self.place


def tick(progress: Progress | None, label: str, done: int, total: int) -> None:
    """Report to whoever listens."""
    if progress is not None:
        progress(label, done, total)

"""What every page of the paper is made of: experiments, sections that show them, and selections of sections.

An :class:`Experiment` runs under settings and returns numbers and pictures. A :class:`Section` writes words about the
numbers of one experiment and computes nothing itself. A :class:`Selection` is a page: some sections under one title.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lessnoise.report import Drawing

Numbers = dict[str, Any]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is computed, with which seed, and where the public files are.

    ``quick`` takes embedded data and few repetitions. ``data`` is a folder; None leaves the choice to $LESSNOISE_DATA.
    ``options`` has parameters of single experiments, by the experiment's name, that replace the usual ones.
    """

    quick: bool = False
    seed: int = 0
    data: str | None = None
    options: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment found: numbers ready for JSON, and files by name: pictures (.svg, .png) and tables (.csv).

    Beside every drawing lies the same picture as PNG.
    """

    numbers: Numbers
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        twins = {f"{name[:-4]}.png": drawn.png() for name, drawn in self.files.items() if isinstance(drawn, Drawing)}
        object.__setattr__(self, "files", {**{name: bytes(found) for name, found in self.files.items()}, **twins})


@dataclass(frozen=True, slots=True)
class Experiment:
    """One computation. ``run(folder, progress, **parameters)`` does it; ``usual(settings)`` are the parameters.

    The parameters are plain values: together with the code they decide the result, so they decide whether a stored
    result is still good.
    """

    name: str
    usual: Callable[[Settings], Numbers]
    run: Callable[..., Result]

    def parameters(self, settings: Settings) -> Numbers:
        """The usual ones, with those that the settings replace."""
        return {**self.usual(settings), **settings.options.get(self.name, {})}


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
    """One figure or table: its name for ``--only``, its title, its place in the paper, and its experiment."""

    name: str
    title: str
    place: str
    experiment: str
    write: Callable[[Numbers], Words]

    @property
    def ours(self) -> bool:
        """Not in the paper."""
        return not self.place


@dataclass(frozen=True, slots=True)
class Selection:
    """A page. ``introduce(settings, numbers)`` writes its first paragraph and the smaller one below it.

    ``numbers`` has what each experiment found, by name; None where it is missing.
    """

    title: str
    introduce: Callable[[Settings, Mapping[str, Numbers | None]], tuple[str, str]]
    sections: Sequence[Section]


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one experiment ended. ``numbers`` is None if there is no result, and then ``reason`` says why."""

    experiment: str
    status: str
    seconds: float
    reason: str = ""
    numbers: Numbers | None = None


@dataclass(frozen=True, eq=False)
class Page:
    """What a page is rendered from: a selection, how its experiments ended, and where their files are.

    ``file(name)`` is the content of a picture, and ``beside(name)`` where it lies beside the page, or None if pictures
    are in the page alone; ``numbers_file`` names the file with an experiment's numbers.
    """

    selection: Selection
    settings: Settings
    outcomes: dict[str, Outcome]
    file: Callable[[str], bytes]
    numbers_file: str
    manifest: str = ""
    beside: Callable[[str], str] | None = None

    @property
    def sections(self) -> Sequence[Section]:
        """In order."""
        return self.selection.sections

    @property
    def missing(self) -> list[Outcome]:
        """What was left out or failed."""
        return [outcome for outcome in self.outcomes.values() if outcome.numbers is None]


def tick(progress: Progress | None, label: str, done: int, total: int) -> None:
    """Report to whoever listens."""
    if progress is not None:
        progress(label, done, total)

"""Every computation and every section of the report, in order: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise.reproduce.item import Section, Work
from lessnoise.reproduce.words import claims as claim_words
from lessnoise.reproduce.words import counts as count_words
from lessnoise.reproduce.words import theory as theory_words
from lessnoise.reproduce.works import attacks, claims, counts, curves, frontier, theory

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKS: dict[str, Work] = {
    work.name: work
    for work in (  # the longest first, so that none is alone at the end
    )
}

SECTIONS: tuple[Section, ...] = (
)


def chosen(only: Sequence[str] = ()) -> tuple[Section, ...]:
    """The sections of these names in the report's order, or all."""
    names = [section.name for section in SECTIONS]
    for name in only:
        if name not in names:
            raise InvalidInput(f"only={name!r} is not in the report: choose from {', '.join(names)}.")
    return tuple(section for section in SECTIONS if not only or section.name in only)

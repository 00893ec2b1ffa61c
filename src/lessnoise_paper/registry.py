"""Every computation and every section of the report, in order: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise_paper import experiments as works
from lessnoise_paper import sections as words
from lessnoise_paper.model import Section, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKS: dict[str, Work] = {
    work.name: work
    for work in (  # the longest first, so that none is alone at the end
        works.pca.WORK,
        works.counts.WORK,
        works.frontier.WORK,
        works.curves.WORK,
        works.learning.WORK,
        works.geometry.NULL_SPACE,
        works.attacks.WORK,
        works.claims.WORK,
        works.theory.DIMENSIONS,
        works.theory.TABLE,
        works.theory.RANGE,
        works.geometry.ANGLE,
    )
}

SECTIONS: tuple[Section, ...] = (
    Section("table-1", "Comparison of the mechanisms", "Table 1", "table-1", words.theory.table_1),
    Section("fig-1", "The triangle of the proof", "Figure 1", "angle", words.theory.figure_1),
    Section("fig-2", "The range of epsilon", "Figure 2", "range-of-epsilon", words.theory.figure_2),
    Section("fig-3", "The null space of the noise", "Figure 3", "null-space", words.theory.figure_3),
    Section("fig-4", "Maps of private counts", "Figure 4", "counts", words.counts.figure_4),
    Section("fig-5", "How the losses are distributed", "Figure 5", "counts", words.counts.figure_5),
    Section("fig-6", "Principal components", "Figure 6", "pca", words.pca.figure_6),
    Section("fig-7", "Training on MNIST", "Figure 7", "learning", words.learning.figure_7),
    Section("fig-8", "Training on CIFAR-10", "Figure 8", "learning", words.learning.figure_8),
    Section("fig-9", "Expected loss against M", "Figure 9", "loss-against-dimension", words.theory.figure_9),
    Section("fig-10", "Counts, all at the smallest epsilon", "Figure 10", "counts", words.counts.figure_10),
    Section("fig-11", "Components, all at the smallest epsilon", "Figure 11", "pca", words.pca.figure_11),
    Section("curves", "Exact curves, and every claim", "", "curves", words.ours.curves),
    Section("claims", "The record of claims", "", "claims", words.ours.claims),
    Section("equal-counts", "Counts at equal exact privacy", "", "counts", words.counts.equal),
    Section("equal-pca", "Components at equal exact privacy", "", "pca", words.pca.equal),
    Section("frontier", "The least noise, and its limit", "", "frontier", words.ours.frontier),
    Section("attacks", "Attacks", "", "attacks", words.ours.attacks),
)
"""Numbers are those of the paper's full version; its table 2 lists notation and has no numbers."""


def chosen(only: Sequence[str] = ()) -> tuple[Section, ...]:
    """The sections of these names in the report's order, or all.

    >>> [section.title for section in chosen(["fig-9"])]
    ['Expected loss against M']
    """
    names = [section.name for section in SECTIONS]
    for name in only:
        if name not in names:
            raise InvalidInput(f"only={name!r} is not in the report: choose from {', '.join(names)}.")
    return tuple(section for section in SECTIONS if not only or section.name in only)

"""Every experiment, every section, and the pages that are selections of them: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise_paper import experiments, sections
from lessnoise_paper.model import Experiment, Section, Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (  # the longest first, so that none is alone at the end
        experiments.pca.EXPERIMENT,
        experiments.counts.EXPERIMENT,
        experiments.ours.FRONTIER,
        experiments.demo.EXPERIMENT,
        experiments.learning.EXPERIMENT,
        experiments.geometry.NULL_SPACE,
        experiments.ours.ATTACKS,
        experiments.ours.CLAIMS,
        experiments.theory.DIMENSIONS,
        experiments.ranks.RANKS,
        experiments.ranks.COVARIANCE,
        experiments.theory.TABLE,
        experiments.remarks.QUERIES,
        experiments.remarks.CHAIN,
        experiments.theory.RANGE,
        experiments.mvg.EXPERIMENT,
        experiments.geometry.ANGLE,
        experiments.remarks.MOMENTS,
    )
}

SECTIONS: tuple[Section, ...] = (
    Section("table-1", "Comparison of the mechanisms", "Table 1", "table-1", sections.theory.table_1),
    Section("clue", "The covariance, and an ignored clue", "Section 4", "covariance", sections.remarks.clue),
    Section("property-1", "Dependent queries", "Property 1", "dependent-queries", sections.remarks.property_1),
    Section("fig-1", "The triangle of the proof", "Figure 1", "angle", sections.theory.figure_1),
    Section("fig-2", "The range of epsilon", "Figure 2", "range-of-epsilon", sections.theory.figure_2),
    Section("fig-3", "The null space of the noise", "Figure 3", "null-space", sections.theory.figure_3),
    Section("remark-2", "Moments of the loss", "Remark 2", "moments", sections.remarks.remark_2),
    Section("fig-4", "Maps of private counts", "Figure 4", "counts", sections.counts.figure_4),
    Section("fig-5", "How the losses are distributed", "Figure 5", "counts", sections.counts.figure_5),
    Section("fig-6", "Principal components", "Figure 6", "pca", sections.pca.figure_6),
    Section("fig-7", "Training on MNIST", "Figure 7", "learning", sections.learning.figure_7),
    Section("fig-8", "Training on CIFAR-10", "Figure 8", "learning", sections.learning.figure_8),
    Section("inside-range", "Training inside the stated range", "Remark 1", "learning", sections.learning.inside),
    Section("appendix-a", "The bound on MVG and its proof", "Appendix A", "mvg-chain", sections.remarks.appendix_a),
    Section("fig-9", "Expected loss against M", "Figure 9", "loss-against-dimension", sections.theory.figure_9),
    Section("fig-10", "Counts, all at the smallest epsilon", "Figure 10", "counts", sections.counts.figure_10),
    Section("fig-11", "Components, all at the smallest epsilon", "Figure 11", "pca", sections.pca.figure_11),
    Section("curves", "Exact curves, and every claim", "", "demo", sections.demo.curves),
    Section("claims", "The record of claims", "", "claims", sections.ours.claims),
    Section("equal-counts", "Counts at equal exact privacy", "", "counts", sections.counts.equal),
    Section("equal-pca", "Components at equal exact privacy", "", "pca", sections.pca.equal),
    Section("mvg", "What MVG needs", "", "mvg", sections.mvg.needed),
    Section("learning-rates", "Training in other ways", "", "learning", sections.learning.rates),
    Section("membership", "Was the record in the batch?", "", "learning", sections.learning.membership),
    Section("rank", "Loss against rank", "", "loss-against-rank", sections.remarks.rank),
    Section("frontier", "The least noise, and its limit", "", "frontier", sections.ours.frontier),
    Section("attacks", "Attacks", "", "attacks", sections.ours.attacks),
)
"""The report's. Numbers are those of the paper's full version; its table 2 lists notation and has no numbers."""

STUDY_SECTIONS: tuple[Section, ...] = (
    Section("city-maps", "One release of each, on the same scale", "", "demo", sections.demo.maps),
    Section("city-spread", "How much one release varies", "", "demo", sections.demo.spread),
    Section("city-frontier", "Where less noise will do", "", "demo", sections.demo.frontier),
    Section("city-attack", "Reading the raw table back", "", "demo", sections.demo.attack),
    Section("counts-attack", "Reading the raw table back", "", "counts", sections.counts.attack),
    Section("training-lines", "Accuracy and exact guarantees", "", "learning", sections.learning.lines),
)
"""Those of single pages alone."""


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


def report(only: Sequence[str] = ()) -> Selection:
    """The whole report, or the sections of these names."""
    title = "Less is more? Every figure and table, with its exact privacy"
    return Selection(title, sections.ours.introduce, chosen(only))


def _page(title: str, introduce: sections.Introduce, *names: str) -> Selection:
    found = {section.name: section for section in (*SECTIONS, *STUDY_SECTIONS)}
    return Selection(title, introduce, tuple(found[name] for name in names))


DEMO = _page(
    "One synthetic city, one promise, every mechanism",
    sections.demo.introduce,
    *("curves", "city-maps", "city-spread", "city-frontier", "city-attack"),
)
COUNTS = _page(
    "Pickup counts of a city: as published, and on equal terms",
    sections.counts.introduce,
    *("fig-4", "fig-5", "fig-10", "equal-counts", "counts-attack"),
)
COMPONENTS = _page(
    "Private components: as published, and on equal terms", sections.pca.introduce, "fig-6", "fig-11", "equal-pca"
)
_TRAINING = ("training-lines", "inside-range", "learning-rates")
TRAINING = _page("Private learning: as published, and on equal terms", sections.learning.introduce, *_TRAINING)
TRAINING_ATTACKED = _page(TRAINING.title, sections.learning.introduce, *_TRAINING, "membership")
"""With attacks on one step."""

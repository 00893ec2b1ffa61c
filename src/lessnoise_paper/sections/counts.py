"""Words of case study I: figures 4, 5 and 10, and the comparison at equal exact privacy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise_paper.experiments.counts import map_file
from lessnoise_paper.model import Fact, Picture, Words
from lessnoise_paper.sections.common import (
    chip,
    claimed_list,
    count_query,
    fact,
    listed,
    percent,
    raw_table_words,
    rows_table,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings

_PUBLISHED, _GAUSSIAN = "r1smg-published", "analytic-gaussian"
PAPER_LARGEST = {"classic-gaussian": "higher than 60", "mvg-published": "50", "mgm": "40", "truth": "around 27"}
"""The largest counts on the paper's maps (section 7.1, "Results")."""

PAPER_LOSSES = "about 1.5e4 for R1SMG and about 5e4 for the others"
"""Section 7.1, "Utility boosting and stability"."""


def figure_4(numbers: Numbers) -> Words:
    """The maps at the paper's settings."""
    rows = numbers["paper_settings"]
    published = _of(rows, _PUBLISHED)
    verdict = verdict_of(published)
    table, occupied = _attack(numbers, _PUBLISHED), numbers["occupied_cells"]
    largest = text.number(numbers["largest_count_on_the_map"])
    failing = [row["label"] for row in rows if row["verdict_word"] != "holds"]
    return Words(
        setting=(
            f"{_data(numbers)}, counted on {_grid(numbers)} cells. R1SMG at ε = "
            f"{text.number(verdict.claimed.epsilon)}, the others at ε = "
            f"{text.number(verdict_of(_of(rows, _GAUSSIAN)).claimed.epsilon)}, δ = "
            f"{text.number(verdict.claimed.delta)}; Δ² = 2, one pickup replaced (DAWA and H_b: added or removed, as "
            "their authors' code has it). As in the paper, cells without a pickup count as public knowledge and are "
            "grey."
        ),
        paper=(
            f"R1SMG keeps the patterns best. The largest counts on the maps are {PAPER_LARGEST['truth']} in truth, "
            f"{PAPER_LARGEST['classic-gaussian']} with the classic Gaussian, {PAPER_LARGEST['mvg-published']} with "
            f"MVG and {PAPER_LARGEST['mgm']} with MGM."
        ),
        ours=(
            f"R1SMG loses {text.number(published['losses']['mean_valid'], 3)} over the occupied cells, the analytic "
            f"Gaussian {text.number(_of(rows, _GAUSSIAN)['losses']['mean_valid'], 3)}. Largest counts: {largest} in "
            "truth, "
            + ", ".join(f"{text.number(row['largest_released'], 3)} with {row['label']}" for row in rows)
            + "."
        ),
        privacy=(
            "Under every map: what is claimed, and what is proved or exact. Of the mechanisms shown, "
            f"{listed(failing)} {'does' if len(failing) == 1 else 'do'} not keep the claim (red frames). R1SMG: "
            f"claimed {text.pair(verdict.claimed)}, exact delta {text.exact_delta(verdict)}."
        ),
        shows=(
            "The clear map is clear because it hides little. Counts are whole numbers, so anyone may round them: "
            f"{table['exact_tables']:,} of {table['releases']:,} seeded R1SMG releases "
            f"({percent(table['share'], 2)}), rounded, are the raw table in every cell, with every pickup in it. Of "
            f"the analytic Gaussian's releases, {_attack(numbers, _GAUSSIAN)['exact_tables']} are. A promise of ε = "
            f"{text.number(verdict.claimed.epsilon)} would allow hardly any difference between two neighbouring "
            "tables."
        ),
        pictures=(
            Picture(
                "counts-truth.png",
                f"The true counts on {occupied} occupied cells, at most {largest} in a cell.",
                f"not private, largest count {largest}",
                small=True,
                title="The truth",
            ),
            *(_map("paper", row) for row in rows),
        ),
        tables=(_losses_table(rows, numbers),),
        facts=(fact(count_query(numbers["shape"]), published),),
        fails=bool(failing),
        headline=(
            f"On the paper's count query R1SMG claims {text.pair(verdict.claimed)}; its exact delta is "
            f"{text.exact_delta(verdict)}, and {table['exact_tables']:,} of {table['releases']:,} releases, rounded, "
            "are the exact raw table."
        ),
    )


def figure_5(numbers: Numbers) -> Words:
    """How the losses are distributed."""
    rows = numbers["paper_settings"]
    published, gaussian = _of(rows, _PUBLISHED), _of(rows, _GAUSSIAN)
    losses = published["losses"]
    means = "; ".join(f"{row['label']}: {text.number(row['losses']['mean_valid'], 3)}" for row in rows)
    where = " (of the paper's data, not of this made-up city)" if numbers["synthetic"] else ""
    circle = "" if numbers["synthetic"] else ", and the paper's mean (circle)"
    return Words(
        setting=(
            f"{numbers['repetitions']} releases of each mechanism at the settings of figure 4; the loss counts the "
            f"{numbers['occupied_cells']} occupied cells of {_grid(numbers)}."
        ),
        paper=(
            f"Mean losses: {PAPER_LOSSES}{where}. R1SMG's losses have kurtosis 35/3 and skewness 5/√3 and are called "
            "stable."
        ),
        ours=(
            f"R1SMG: mean {text.number(losses['mean_valid'], 3)}, expected "
            f"{text.number(losses['expected_valid'], 3)}; analytic Gaussian: "
            f"{text.number(gaussian['losses']['mean_valid'], 3)}, expected "
            f"{text.number(gaussian['losses']['expected_valid'], 3)}. Kurtosis and skewness of R1SMG over all cells: "
            f"{text.number(losses['observed_kurtosis'], 3)} and {text.number(losses['observed_skewness'], 3)} "
            f"observed, {text.number(losses['kurtosis'])} and {text.number(losses['skewness'])} in theory."
        ),
        privacy=claimed_list(rows),
        fails=True,
        shows=(
            "Independent noise makes the loss nearly the same in every release. R1SMG has one random length for all "
            "cells, so its loss varies by orders of magnitude: a long tail of bad releases, and many with next to no "
            "noise. Those are the ones that give people away. MVG by its published theorem adds far more noise than "
            "the paper's figure shows; calibrated exactly it is the analytic Gaussian, and so is MGM."
        ),
        pictures=(
            Picture(
                "counts-losses.svg",
                f"Losses of all repetitions on one logarithmic axis. Means: {means}.",
                f"Loss of each release and its mean (diamond){circle}. {_short(published)}",
            ),
            Picture(
                "counts-densities.svg",
                "Histogram and density of each mechanism's loss; R1SMG's is piled up at zero with a long tail, "
                f"kurtosis {text.number(losses['observed_kurtosis'], 3)}.",
                f"The same on axes of their own, with the claimed and the exact delta above each. {_short(published)}",
            ),
        ),
    )


def figure_10(numbers: Numbers) -> Words:
    """All mechanisms at R1SMG's epsilon."""
    rows = numbers["all_at_1e-5"]
    others = [row for row in rows if row["key"] != _PUBLISHED]
    claim = verdict_of(rows[0]).claimed
    largest = "; ".join(f"{row['label']}: {text.number(row['largest_released'], 3)}" for row in others)
    return Words(
        setting=(
            f"Figure 10 (appendix D): all mechanisms at R1SMG's ε = {text.number(claim.epsilon)}, δ = "
            f"{text.number(claim.delta)}."
        ),
        paper="The others achieve very poor utility; the counts are of the order of 10⁵.",
        ours=(
            f"Very poor utility indeed. Largest counts on the maps: {largest}; the truth is "
            f"{text.number(numbers['largest_count_on_the_map'])}."
        ),
        privacy=claimed_list(rows),
        fails=True,
        shows=(
            "At such an epsilon noise must drown any count: the promise is that the release hardly depends on "
            "anyone. The mechanisms that keep it show what it costs, and the only clear map, R1SMG's in figure 4, "
            f"belongs to one that does not keep it. {_flat(others)}Each map has colours of its own."
        ),
        pictures=tuple(_map("strict", row) for row in others),
        tables=(_losses_table(rows, numbers),),
    )


def equal(numbers: Numbers) -> Words:
    """The comparison at equal exact privacy."""
    rows, true = numbers["honest"], numbers["at_the_true_r1smg_guarantee"]
    target, true_target = numbers["honest_target"], numbers["true_r1smg_target"]
    published, gaussian = _of(numbers["paper_settings"], _PUBLISHED), _of(true, _GAUSSIAN)
    best, least, r1smg = rows[0], _of(rows, "least-noise"), _of(rows, "r1smg")
    pair = f"({text.number(target['epsilon'])}, {text.number(target['delta'])})"
    true_pair = f"({text.at_most(true_target['epsilon'])}, {text.at_most(true_target['delta'])})"
    ratio = text.number(published["mean_loss"] / gaussian["mean_loss"], 2)
    means = "; ".join(f"{row['label']}: {text.number(row['mean_loss'], 3)}" for row in rows)
    cells = math.prod(numbers["shape"])
    return Words(
        setting=(
            f"Not in the paper: every mechanism on the same counts for one pickup replaced, each calibrated exactly "
            f"for {pair}, or for ε alone if its δ is 0."
        ),
        paper="",
        ours=(
            f"The smallest loss over the occupied cells is {text.number(best['mean_loss'], 3)} ({best['label']}); "
            f"least noise, which knows nothing of counts, has {text.number(least['mean_loss'], 3)}; R1SMG that keeps "
            f"the promise has {text.number(r1smg['mean_loss'], 3)}. The other way round, at {true_pair}, which is "
            f"what published R1SMG really has, the analytic Gaussian loses {text.number(gaussian['mean_loss'], 3)} "
            f"and R1SMG {text.number(published['mean_loss'], 3)}, {ratio} times as much."
        ),
        privacy=(
            f"All at {pair} or δ = 0, proved by each mechanism's own curve; below, all at {true_pair}. "
            f"{claimed_list(rows)}"
        ),
        shows=(
            "On equal terms a noise of rank one is no bargain: all its length lies in one random direction of "
            f"{cells:,}, where the change of one pickup hardly ever points, so it must be enormous to hide that "
            "change. What helps on counts is to use what is known of them: whole numbers, an l1 sensitivity of 2, "
            "neighbouring cells with similar counts."
        ),
        pictures=(
            Picture(
                "counts-equal.svg",
                f"Expected losses at equal exact privacy {pair}: {means}.",
                "Expected loss over the occupied cells (DAWA: mean of the repetitions). Above: all exactly at "
                f"{pair}; below: all at {true_pair}, the exact privacy of published R1SMG.",
            ),
            *(_map("equal", row) for row in rows),
        ),
        tables=(_losses_table(rows, numbers),),
        headline=(
            f"At the privacy that published R1SMG really has, {true_pair}, the plain Gaussian's expected loss (summed "
            f"squared error) is {text.number(gaussian['mean_loss'], 3)}, R1SMG's "
            f"{text.number(published['mean_loss'], 3)}; at an exact {pair} R1SMG's is "
            f"{text.number(r1smg['mean_loss'], 2)}, the Gaussian's "
            f"{text.number(_of(rows, _GAUSSIAN)['mean_loss'], 3)}."
        ),
        facts=(
            Fact(
                "Analytic Gaussian, the same counts",
                pair,
                f"delta {text.exact_delta(verdict_of(_of(rows, _GAUSSIAN)))}",
                "holds",
            ),
        ),
    )


def attack(numbers: Numbers) -> Words:
    """What rounding gives away."""
    found, facts = numbers["reconstruction"], numbers["published_r1smg"]
    words = raw_table_words(found, claimed_list([_of(numbers["paper_settings"], one["key"]) for one in found]))
    exact = (
        f"Published R1SMG has an exact delta of at least {text.at_least(facts['delta_at_1e-5'])} at its own epsilon, "
        f"still {text.at_least(facts['delta_at_0.5'])} at epsilon = 0.5, and keeps delta = 1e-7 only from epsilon = "
        f"{text.number(facts['epsilon_at_1e-7'], 3)} on."
    )
    return replace(words, shows=f"{words.shows} {exact}")


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study I."""
    numbers = found["counts"]
    assert numbers is not None
    published = _of(numbers["paper_settings"], _PUBLISHED)
    gaussian = _of(numbers["at_the_true_r1smg_guarantee"], _GAUSSIAN)
    verdict = verdict_of(published)
    again = ", on made-up pickups" if numbers["synthetic"] else ", and find its losses again"
    lede = (
        f"{numbers['pickups']:,} pickups are counted on a grid of {_grid(numbers)} cells, and the counts are released "
        "with noise. The R1SMG paper reports that its mechanism loses less than the Gaussian ones, at a far smaller "
        f"epsilon. We repeat its case study with its own settings{again}. Beside every number stands the exact "
        f"privacy: published R1SMG claims {text.pair(verdict.claimed)}, and its exact delta at that epsilon is "
        f"{text.exact(verdict.exact)}. At that same exact guarantee the plain Gaussian mechanism loses "
        f"{text.number(published['mean_loss'] / gaussian['mean_loss'], 2)} times less."
    )
    mark = (
        f"Data: {numbers['data']}. The releases use seed {numbers['seed']}, so that you can repeat them. Seeded "
        "releases are not private. Like the paper, we take the occupied cells for public knowledge and drop all others "
        "from the maps and losses; in earnest that knowledge must come from elsewhere than the data."
    )
    return lede, mark


# Pieces.

_DROWNED = 1e4
"""Largest counts below this need a word at an epsilon of 1e-5, where independent noise makes them 1e5 and more."""


def _flat(rows: list[Numbers]) -> str:
    """Why DAWA's counts are small where all others are drowned."""
    names = [row["label"] for row in rows if row["key"].startswith("dawa") and row["largest_released"] < _DROWNED]
    return f"{listed(names)} gives large blocks of cells one count each, and no pattern is left. " if names else ""


def _of(rows: list[Numbers], key: str) -> Numbers:
    return next(row for row in rows if row["key"] == key)


def _attack(numbers: Numbers, key: str) -> Numbers:
    return _of(numbers["reconstruction"], key)


def _grid(numbers: Numbers) -> str:
    return " x ".join(map(str, numbers["shape"]))


def _data(numbers: Numbers) -> str:
    if not numbers["synthetic"]:
        return f"{numbers['data']}: {numbers['pickups']:,} pickups"
    return (
        f"{numbers['pickups']:,} pickups of a made-up city, as many as in the paper's three days of New York (its own "
        "data come with --data, without --quick)"
    )


def _short(row: Numbers) -> str:
    return f"{row['label']}: {text.privacy(verdict_of(row))}."


def _map(part: str, row: Numbers) -> Picture:
    words = text.privacy(verdict_of(row))
    largest = text.number(row["largest_released"], 3)
    return Picture(
        map_file(part, row["key"]),
        f"The counts released by {row['label']}, largest {largest}; {words}.",
        f"{words}, largest count {largest}",
        small=True,
        title=row["label"],
        failing=row["verdict_word"] != "holds",
    )


def _losses_table(rows: list[Numbers], numbers: Numbers) -> str:
    head = ("Mechanism", "Claim", "Neighbours", "Exact δ", "Verdict", "Mean loss", "Expected", "The paper", "All cells")
    lines = []
    for row in rows:
        verdict, losses = verdict_of(row), row["losses"]
        paper = row["paper_mean_valid"]
        cells = (
            text.pair(verdict.claimed),
            verdict.claimed.neighbours.value,
            text.exact_delta(verdict),
            chip(verdict.word),
            text.number(losses["mean_valid"], 3),
            "" if losses["expected_valid"] is None else text.number(losses["expected_valid"], 3),
            "" if paper is None else f"about {text.number(paper)}",
            text.number(losses["mean_whole"], 3),
        )
        lines.append((row["label"], row["colour"], cells))
    return rows_table(head, lines, f"Losses over {numbers['occupied_cells']} occupied cells")

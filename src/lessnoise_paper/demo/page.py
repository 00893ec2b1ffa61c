"""The demonstration as one self-contained HTML page. Every number on it comes from the result."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lessnoise.files import check_free, write_together
from lessnoise.report import text
from lessnoise.report.canvas import COLOURS
from lessnoise.report.frontier import frontier_svg
from lessnoise.report.html import count_word, document, embedded, figure, map_figure, prose, table
from lessnoise_paper.demo import pictures as plots
from lessnoise_paper.demo.run import CONTROL

if TYPE_CHECKING:
    import os

    from lessnoise.guarantees import Guarantee
    from lessnoise_paper.demo.run import DemoResult, DemoRow, Reconstruction

PAPER = "Ji & Li, Less is More: Revisiting the Gaussian Mechanism for Differential Privacy, USENIX Security 2024"


def write_page(result: DemoResult, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the page in one step: a reader sees all of it or nothing, and an existing file only goes with ``force``."""
    target = Path(path)
    check_free([target], force)
    content = page_html(result).encode()
    write_together({target: lambda file: file.write(content)}, force)
    return target


def page_html(result: DemoResult) -> str:
    """The whole page as text."""
    title = f"{count_word(len(result.rows)).capitalize()} mechanisms, one synthetic city, one promise"
    body = "\n".join(
        [
            f"<header>\n<h1>{escape(title)}</h1>\n{_introduction(result)}\n</header>",
            "<main>",
            _table(result),
            _maps(result),
            _curves(result),
            _losses(result),
            _frontier(result),
            _reconstruction(result),
            "</main>",
            _footer(result),
        ]
    )
    return document(title, body)


def _introduction(result: DemoResult) -> str:
    target = result.target
    kept = [row for row in result.rows if row.holds]
    cells = f"{result.counts.value.size:,}"
    sentences = [
        f"A city wants to publish how many taxi pickups each of {cells} grid cells had, without giving any single "
        "pickup away.",
        f"Differential privacy promises that, in numbers: with epsilon = {text.number(target.epsilon)} and "
        f"delta = {text.number(target.delta)}, replacing any one pickup must hardly change what the public sees.",
        "A mechanism keeps the promise by adding noise, and less noise means a better map.",
        f"Below, {count_word(len(result.rows))} mechanisms meet on the same map, each with its exact delta, computed "
        "rather than trusted.",
        _outcome(result, kept),
    ]
    mark = (
        f"The city and its {int(result.counts.value.sum()):,} pickups are synthetic. The releases use seed "
        f"{result.seed}, so that you can repeat them: they are seeded, so not private."
    )
    return f'<p class="lede">{prose(" ".join(sentences))}</p>\n<p class="mark">{escape(mark)}</p>'


def _outcome(result: DemoResult, kept: list[DemoRow]) -> str:
    failed = len(result.rows) - len(kept)
    if not kept:
        return "None of them is proved to keep its claim here."
    best = (
        f"{count_word(len(kept)).capitalize()} of them {_keep(len(kept))} promise, the {kept[0].label} with the least "
        f"noise ({text.number(kept[0].standard_deviation, 3)} per cell)"
    )
    return f"{best}, and {count_word(failed)} {'does' if failed == 1 else 'do'} not." if failed else f"{best}."


def _keep(count: int) -> str:
    return "keeps its" if count == 1 else "keep their"


# Sections.


def _table(result: DemoResult) -> str:
    head = (
        "Mechanism",
        "Claim (epsilon, delta)",
        "Exact delta at that epsilon",
        "Verdict",
        "Noise per cell (sd)",
        "Expected loss",
        "5% of losses below",
        "Median loss",
        "95% of losses below",
        "Loss of the map shown",
    )
    rows, failing = [], False
    for row in result.rows:
        first_failing, failing = not row.holds and not failing, failing or not row.holds
        rows.append(_table_row(row, first_failing))
    note = (
        "Mechanisms that keep their promise come first, each group by expected loss. The loss is the sum of the "
        "squared noise over all cells, so smaller is better. Exact deltas are proved brackets, shown as one number "
        "where both ends round to it; a claim holds only if the upper end does."
    )
    return (
        "<section>\n<h2>The comparison</h2>\n"
        + table(head, rows, "Comparison of the mechanisms")
        + f'<p class="mark">{escape(note)}</p>\n</section>'
    )


def _table_row(row: DemoRow, first_failing: bool) -> str:
    cells = [
        escape(text.pair(row.verdict.claimed)),
        escape(text.exact(row.verdict.exact)),
        _verdict(row),
        text.number(row.standard_deviation),
        *(text.number(value, 3) for value in (row.expected_loss, *row.loss_quantiles, row.observed_loss)),
    ]
    dot = f'<span class="dot" style="background:{COLOURS[row.key]}"></span>'
    opening = '<tr class="first-failing">' if first_failing else "<tr>"
    return f'{opening}<th scope="row">{dot}{prose(row.label)}</th>' + "".join(f"<td>{c}</td>" for c in cells) + "</tr>"


def _maps(result: DemoResult) -> str:
    figures = [
        map_figure(
            plots.map_png(result),
            "The true counts: a bright tilted centre between two dark rivers, a second centre to the east, two "
            "airports, roads and towns.",
            f"<strong>The truth</strong>, {int(result.counts.value.sum()):,} synthetic pickups, at most "
            f"{text.number(float(result.counts.value.max()))} in a cell",
        )
    ]
    for row in result.rows:
        deviation = text.number(row.standard_deviation, 3)
        figures.append(
            map_figure(
                plots.map_png(result, row.key),
                f"The counts released by {row.label}, with noise of standard deviation {deviation} per cell.",
                f"<strong>{prose(row.label)}</strong>, noise sd {deviation}, {_verdict(row)}",
                bad=not row.holds,
            )
        )
    note = (
        "All maps share one logarithmic colour scale. Noise makes some counts negative; those are shown as 0, in the "
        "darkest colour, and counts above the true maximum in the brightest."
    )
    if not all(row.holds for row in result.rows):
        note += " A red frame marks a mechanism that does not protect what it claims to, however clear its map is."
    scale = embedded(plots.scale_svg(result), "svg+xml", "Colour scale of the maps, from 1 pickup or less up.")
    return (
        f"<section>\n<h2>One release of each, on the same scale</h2>\n<p>{escape(note)}</p>\n"
        f'<div class="card scale">{scale}</div>\n<div class="maps">\n' + "\n".join(figures) + "\n</div>\n</section>"
    )


def _curves(result: DemoResult) -> str:
    kept = ", ".join(row.label for row in result.rows if row.holds)
    sentences = [_claim_sentence(row, result.target) for row in result.rows if not row.holds]
    alt = "Exact delta against epsilon, both logarithmic. " + " ".join(sentences)
    caption = (
        "Each line is what a mechanism really guarantees. A circle marks what is claimed; an arrow leads from a claim "
        f"that fails to the cross at its exact delta. At or below the promise: {kept}."
    )
    paragraphs = "\n".join(f"<p>{prose(sentence)}</p>" for sentence in sentences)
    return (
        f"<section>\n<h2>What is claimed, and what is true</h2>\n{paragraphs}\n"
        + figure(plots.curves_svg(result), alt, caption)
        + "\n</section>"
    )


def _claim_sentence(row: DemoRow, target: Guarantee) -> str:
    claim = row.verdict.claimed
    kind = "R1SMG calibration" if row.key.startswith("r1smg-published") else row.label
    source = "" if row.mechanism.claim is None else f" ({row.mechanism.claim.source})"
    truth = f"the exact delta at that epsilon is {text.exact(row.verdict.exact)}"
    if row.verdict.refuted and claim.delta > 0.0:
        truth += f", about {text.multiple(row.verdict.exact.lower / claim.delta)} times the claim"
    sentence = f"The published {kind}{source} claims {text.pair(claim)}; {truth}."
    if claim.epsilon != target.epsilon:
        sentence += f" At the promised epsilon = {text.number(target.epsilon)} it is {text.exact(row.target_delta)}."
    limit, words = _stated_range(row)
    if claim.epsilon >= limit:
        sentence += f" In fairness, its source states the claim only for {words}, so this setting lies outside it."
    return sentence


def _stated_range(row: DemoRow) -> tuple[float, str]:
    """The epsilon up to which a source states its claim, and how it says so."""
    if row.key.startswith("r1smg-published"):
        limit = 1.0 / row.mechanism.dimension
        return limit, f"epsilon below 1/M = {text.number(limit, 3)}, M being the number of cells"
    return (1.0, "epsilon below 1") if row.key == "classic-gaussian" else (float("inf"), "")


def _losses(result: DemoResult) -> str:
    numbers = "; ".join(f"{row.label}: {text.number(row.expected_loss, 3)}" for row in result.rows)
    return (
        "<section>\n<h2>What the promise costs</h2>\n"
        + "".join(f"<p>{prose(sentence)}</p>\n" for sentence in _cost_sentences(result))
        + figure(plots.losses_svg(result), f"Bars of the expected loss. {numbers}.", f"Expected loss. {numbers}.")
        + "\n</section>\n<section>\n<h2>How much one release varies</h2>\n"
        + figure(plots.spread_svg(result), *_spread_words(result))
        + "\n</section>"
    )


def _spread_words(result: DemoResult) -> tuple[str, str]:
    """Alternative text and caption of the picture of the spread."""
    spread = "; ".join(
        f"{row.label}: {text.number(row.loss_quantiles[0], 3)} to {text.number(row.loss_quantiles[2], 3)}"
        for row in result.rows
    )
    alt = f"Ranges of the loss of one release, from the 5% to the 95% quantile. {spread}."
    caption = (
        "Exact quantiles of the loss, not a simulation. Independent noise in every cell makes the loss nearly the same "
        f"each time; one random direction with one random length makes it vary widely. From 5% to 95%: {spread}."
    )
    return alt, caption


def _cost_sentences(result: DemoResult) -> list[str]:
    """Comparisons that the numbers of this very run support."""
    kept = [row for row in result.rows if row.holds]
    by_key = {row.key: row for row in result.rows}
    found = []
    if kept and kept[0].key == "laplace":
        found.append(
            "Replacing one pickup changes at most two cells, by one each. Laplace noise, which measures that change in "
            "l1, makes the most of it here and needs no delta at all."
        )
    exact, control = by_key["r1smg"], by_key[CONTROL]
    if exact.holds and exact.expected_loss > control.expected_loss:
        found.append(
            "R1SMG draws all its noise along one random direction. Calibrated exactly, it does keep the promise, at "
            f"{text.multiple(exact.expected_loss / control.expected_loss)} times the expected loss of the "
            f"{control.label}."
        )
    claimed = by_key.get("r1smg-published-paper", by_key["r1smg-published"])
    if kept and not claimed.holds and kept[0].expected_loss < claimed.expected_loss:
        found.append(
            f"The {kept[0].label} keeps its promise and still has a smaller expected loss than the published R1SMG at "
            f"{text.pair(claimed.verdict.claimed)}, which does not: {text.number(kept[0].expected_loss)} against "
            f"{text.number(claimed.expected_loss)}."
        )
    return found


def _frontier(result: DemoResult) -> str:
    """The same promise for fewer entries."""
    if not result.frontier:
        return ""
    first = result.frontier[0]
    numbers = "; ".join(f"M = {point.dimension}: {text.number(point.least, 3)}" for point in result.frontier)
    words = (
        f"This table has {math.prod(result.counts.shape):,} cells, where no mechanism for the same l2 sensitivity "
        "gains much on the Gaussian. For fewer entries much of its noise is unnecessary: at the same promise the "
        f"least noise has {text.number(first.least, 3)} of the Gaussian's expected loss if M = {first.dimension}."
    )
    caption = f"Expected loss relative to the analytic Gaussian's, by number of entries. Least noise: {numbers}."
    return (
        f"<section>\n<h2>Where less noise will do</h2>\n<p>{prose(words)}</p>\n"
        + figure(frontier_svg(result.frontier), caption, caption)
        + "\n</section>"
    )


def _reconstruction(result: DemoResult) -> str:
    labels = {row.key: row.label for row in result.rows}
    items = "\n".join(f"<li>{prose(_found(found, labels[found.key]))}</li>" for found in result.reconstructions)
    if not any(not row.holds for row in result.rows):
        return ""
    words = (
        "Counts are whole numbers, so anyone may round a release. If the noise stays below one half in every cell, "
        "rounding returns the whole raw table, and every pickup in it. We drew seeded noise many times and counted how "
        "often its largest entry stayed below one half, which is the same thing."
    )
    return f"<section>\n<h2>Reading the raw table back</h2>\n<p>{escape(words)}</p>\n<ul>\n{items}\n</ul>\n</section>"


def _found(found: Reconstruction, label: str) -> str:
    return f"{label}: {found.exact_tables:,} of {found.releases:,} releases give the exact raw table."


def _footer(result: DemoResult) -> str:
    shape = " x ".join(map(str, result.counts.shape))
    relation = result.target.neighbours
    words = (
        f"Made by lessnoise {result.version}. Query: counts on a {shape} grid with fixed public bounds; neighbours: "
        f"{relation.value} one pickup; l2 sensitivity {text.number(result.counts.sensitivity)}, l1 "
        f"sensitivity {text.number(result.counts.l1_sensitivity)}. The exact curves are those of "
        f"real-valued noise. The published R1SMG calibration and its setting on a count query of "
        f"this kind are those of {PAPER}."
    )
    return f"<footer>\n<p>{escape(words)}</p>\n</footer>"


def _verdict(row: DemoRow) -> str:
    return f'<span class="verdict {"holds" if row.holds else "fails"}">{escape(row.verdict.word)}</span>'

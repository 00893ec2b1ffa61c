"""Case study I as files: one self-contained page, the pictures by themselves, a table and the numbers."""

from __future__ import annotations

import csv
import io
import json
from html import escape
from typing import TYPE_CHECKING

from lessnoise.report import text
from lessnoise.report.html import document, figure, map_figure, prose, table
from lessnoise_paper.demo.page import PAPER
from lessnoise_paper.studies import uber_pictures as pictures
from lessnoise_paper.studies.uber import DELTA, EPSILON, STRICT_EPSILON
from lessnoise_paper.studies.uber_results import StudyRow, UberResult, box_of

if TYPE_CHECKING:
    Rows = tuple[StudyRow, ...]

NAMES = (
    "index.html",
    "numbers.json",
    "table.csv",
    "maps.png",
    "maps-strict.png",
    "maps-honest.png",
    "losses.svg",
    "densities.svg",
    "honest.svg",
)
_COLUMNS = (
    "setting",
    "mechanism",
    "neighbours",
    "claimed_epsilon",
    "claimed_delta",
    "exact_delta_lower",
    "exact_delta_upper",
    "verdict",
    "mean_loss_occupied",
    "expected_loss_occupied",
    "paper_mean",
    "mean_loss_all",
    "expected_loss_all",
    "kurtosis",
    "observed_kurtosis",
    "skewness",
    "observed_skewness",
)
_HONEST_MAPS = ("laplace", "dawa", "hb", "least-noise", "analytic-gaussian", "discrete-gaussian", "r1smg")


def uber_files(result: UberResult) -> dict[str, bytes]:
    """Every file of the study by its name."""
    contents = (
        page_html(result).encode(),
        (json.dumps(result.to_dict(), indent=2) + "\n").encode(),
        table_csv(result).encode(),
        pictures.maps_png(result, result.paper, truth=True),
        pictures.maps_png(result, result.strict[1:], truth=False, own_scale=True),
        pictures.maps_png(result, _honest_maps(result), truth=True),
        pictures.losses_svg(result),
        pictures.densities_svg(result),
        pictures.honest_svg(result),
    )
    return dict(zip(NAMES, contents, strict=True))


def _honest_maps(result: UberResult) -> Rows:
    return tuple(row for row in result.honest if row.key in _HONEST_MAPS)


def parts(result: UberResult) -> list[tuple[str, Rows]]:
    """The settings in words, with their rows."""
    return [
        ("the paper's settings", result.paper),
        (f"all at epsilon = {text.number(STRICT_EPSILON)}", result.strict),
        (f"all at {text.pair(result.target)}, exactly", result.honest),
        (f"all at {text.pair_up(result.true_target)}, exactly", result.true),
    ]


def table_csv(result: UberResult) -> str:
    """One line a mechanism and setting."""
    buffer = io.StringIO()
    out = csv.writer(buffer, lineterminator="\n")
    out.writerow(_COLUMNS)
    for setting, rows in parts(result):
        for row in rows:
            claim, losses = row.verdict.claimed, row.losses
            out.writerow(
                [
                    setting,
                    row.label,
                    claim.neighbours.value,
                    claim.epsilon,
                    claim.delta,
                    row.verdict.exact.lower,
                    row.verdict.exact.upper,
                    row.verdict.word,
                    float(losses.valid.mean()),
                    losses.expected_valid,
                    row.paper_mean,
                    float(losses.whole.mean()),
                    losses.expected_whole,
                    losses.kurtosis,
                    losses.observed_kurtosis,
                    losses.skewness,
                    losses.observed_skewness,
                ]
            )
    return buffer.getvalue()


# The page.


def page_html(result: UberResult) -> str:
    """The whole page as text."""
    title = "Pickup counts of a city: as published, and on equal terms"
    body = "\n".join(
        [
            f"<header>\n<h1>{escape(title)}</h1>\n{_introduction(result)}\n</header>",
            "<main>",
            _paper(result),
            _losses(result),
            _strict(result),
            _honest(result),
            _attack(result),
            "</main>",
            _footer(result),
        ]
    )
    return document(title, body)


def _introduction(result: UberResult) -> str:
    published = result.paper[0]
    cells = " x ".join(map(str, result.counts.shape))
    gaussian = next(row for row in result.true if row.key == "analytic-gaussian")
    ratio = text.number(published.losses.mean_valid / gaussian.losses.mean_valid, 2)
    found = ", on made-up pickups" if result.synthetic else ", and find its losses again"
    words = (
        f"{result.pickups:,} pickups are counted on a grid of {cells} cells, and the counts are released with noise. "
        "The R1SMG paper reports that its mechanism loses less than the Gaussian ones, at a far smaller epsilon. We "
        f"repeat its case study with its own settings{found}. Beside every number stands the exact "
        f"privacy: published R1SMG claims {text.pair(published.verdict.claimed)}, and its exact delta at that epsilon "
        f"is {text.exact(published.verdict.exact)}. At that same exact guarantee the plain Gaussian mechanism loses "
        f"{ratio} times less."
    )
    mark = (
        f"Data: {result.data}. The releases use seed {result.seed}, so that you can repeat them; seeded releases are "
        "not private. Like the paper, we take the occupied cells for public knowledge and drop all others from the "
        "maps and losses; in earnest that knowledge must come from elsewhere than the data."
    )
    return f'<p class="lede">{prose(words)}</p>\n<p class="mark">{escape(mark)}</p>'


def _paper(result: UberResult) -> str:
    words = (
        f"R1SMG at epsilon = {text.number(STRICT_EPSILON)}, the others at {text.number(EPSILON)}, delta = "
        f"{text.number(DELTA)}; neighbours replace one pickup (squared sensitivity 2), except for DAWA and H_b, which "
        "their authors' code runs for one pickup added or removed. A red frame marks a mechanism that does not protect "
        "what it claims to, however clear its map is. All maps have the colours of the true one."
    )
    return (
        f"<section>\n<h2>The paper's settings</h2>\n<p>{prose(words)}</p>\n"
        + _maps(result, result.paper, truth=True)
        + _table(result, result.paper)
        + f'<p class="mark">{prose(_mvg_words(result))}</p>\n</section>'
    )


def _mvg_words(result: UberResult) -> str:
    row = next(row for row in result.paper if row.key == "mvg-published")
    return (
        f"The loss is the sum of the squared errors over the {result.occupied} occupied cells. The paper puts MVG "
        "at about 50,000, which is not what MVG's published theorem gives at this size: with it, a cell's noise has a "
        f"standard deviation of {text.number(row.mechanism.standard_deviation, 3)}. Calibrated exactly, MVG equals the "
        "analytic Gaussian, "
        "and so does MGM. DAWA's error depends on the data, so there is no expectation for it."
    )


def _losses(result: UberResult) -> str:
    theory = result.paper[0].losses
    words = (
        f"{result.repetitions} repetitions of each release. Independent noise makes the loss nearly the same every "
        "time. R1SMG has one random length, so its loss varies widely: the paper measures this by ratios of raw "
        f"moments, E[L^4]/E[L^2]^2 = {text.number(theory.kurtosis or 0.0)} and E[L^3]/E[L^2]^(3/2) = "
        f"{text.number(theory.skewness or 0.0)} in theory, {text.number(theory.observed_kurtosis, 3)} and "
        f"{text.number(theory.observed_skewness, 3)} in these repetitions, which are too few to pin down such a tail. "
        "A long tail is one side of it. The other is many releases with next to no noise, and those give people away."
    )
    numbers = "; ".join(f"{row.label}: {text.number(float(row.losses.valid.mean()), 3)}" for row in result.paper)
    caption = f"Losses over the occupied cells. Means: {numbers}."
    shape = (
        "The same on axes of their own: histogram, smoothed density, the mean of the repetitions and the expected mean."
    )
    return (
        f"<section>\n<h2>How much is lost, and how it varies</h2>\n<p>{prose(words)}</p>\n"
        + figure(pictures.losses_svg(result), caption, caption)
        + figure(pictures.densities_svg(result), shape, shape)
        + _shape_table(result)
        + "</section>"
    )


def _strict(result: UberResult) -> str:
    words = (
        f"The paper's appendix D gives all mechanisms R1SMG's epsilon, {text.number(STRICT_EPSILON)}. Noise that keeps "
        "such a promise drowns any count, and it must: the promise says that the release may hardly depend on anybody. "
        "Each map has colours of its own. DAWA, told that noise is so costly, makes a few very large buckets."
    )
    return (
        f"<section>\n<h2>All at epsilon = {text.number(STRICT_EPSILON)}</h2>\n<p>{prose(words)}</p>\n"
        + _maps(result, result.strict[1:], truth=False)
        + _table(result, result.strict)
        + "</section>"
    )


def _honest(result: UberResult) -> str:
    best = result.honest[0]
    whole = min(result.honest, key=lambda row: float(row.losses.whole.mean()))
    gaussian = next(row for row in result.true if row.key == "analytic-gaussian")
    words = (
        f"Now every mechanism has the same exact guarantee, {text.pair(result.target)} for one pickup replaced, by its "
        f"own curve. The smallest loss is {text.number(best.losses.mean_valid)} on the occupied cells "
        f"({best.label}) and {text.number(float(whole.losses.whole.mean()))} on all cells ({whole.label}). "
        f"R1SMG needs noise of {text.number(_of(result.honest, 'r1smg').mechanism.standard_deviation, 3)} per cell."
    )
    other = (
        f"One may also ask the other way round: what do others lose at the guarantee that published R1SMG really has, "
        f"{text.pair_up(result.true_target)}? The analytic Gaussian loses {text.number(gaussian.losses.mean_valid)}, "
        f"R1SMG {text.number(result.paper[0].losses.mean_valid)}."
    )
    caption = "; ".join(f"{row.label}: {text.number(row.losses.mean_valid, 3)}" for row in result.honest)
    return (
        f"<section>\n<h2>The honest comparison</h2>\n<p>{prose(words)}</p>\n<p>{prose(other)}</p>\n"
        + figure(
            pictures.honest_svg(result),
            caption,
            f"Expected loss over the occupied cells; for DAWA, the mean of the repetitions. {caption}.",
        )
        + _maps(result, _honest_maps(result), truth=True)
        + _table(result, result.honest)
        + "</section>"
    )


def _attack(result: UberResult) -> str:
    items = "\n".join(f"<li>{prose(pictures.attack_words(attack))}</li>" for attack in result.attacks)
    words = (
        "Counts are whole numbers, so anyone may round a release. Where no cell's noise reaches one half, rounding "
        "returns the whole raw table. An attacker who knows all but one pickup can see that it happened."
    )
    facts = result.facts
    exact = (
        f"Published R1SMG has an exact delta of at least {text.at_least(facts['delta_at_1e-5'])} at its own epsilon, "
        f"still {text.at_least(facts['delta_at_0.5'])} at epsilon = 0.5, and keeps delta = 1e-7 only from epsilon = "
        f"{text.number(facts['epsilon_at_1e-7'], 3)} on."
    )
    return (
        f"<section>\n<h2>Reading the raw table back</h2>\n<p>{escape(words)}</p>\n<ul>\n{items}\n</ul>\n"
        f"<p>{prose(exact)}</p>\n</section>"
    )


def _footer(result: UberResult) -> str:
    shape = " x ".join(map(str, result.counts.shape))
    (north, east), (map_north, map_east) = box_of(result.counts), box_of(result.city)
    words = (
        f"Made by lessnoise {result.version}. Losses: counts on {shape} cells over latitude {north}, longitude {east}, "
        f"with {result.occupied} occupied cells; maps: the same pickups over {map_north}, {map_east}. The study "
        f"follows {PAPER}."
    )
    return f"<footer>\n<p>{escape(words)}</p>\n</footer>"


# Pieces.


def _maps(result: UberResult, rows: Rows, *, truth: bool) -> str:
    found = []
    if truth:
        top = text.number(float(result.city.value.max()))
        caption = f"<strong>The truth</strong>, not private, largest count {top}"
        found.append(map_figure(pictures.map_png(result, None), "The true counts.", caption))
    found += [_map(result, row, own_scale=not truth) for row in rows]
    return '<div class="maps">\n' + "\n".join(found) + "\n</div>\n"


def _map(result: UberResult, row: StudyRow, own_scale: bool) -> str:
    largest = text.number(0.0 if row.released is None else float(row.released.max()), 3)
    return map_figure(
        pictures.map_png(result, row, own_scale=own_scale),
        f"The counts released by {row.label}.",
        f"<strong>{prose(row.label)}</strong>, {prose(pictures.privacy(row))}, largest count {largest}",
        bad=not row.holds,
    )


def _table(result: UberResult, rows: Rows) -> str:
    head = (
        "Mechanism",
        "Claim (epsilon, delta)",
        "Neighbours",
        "Exact delta",
        "Verdict",
        "Mean loss, occupied cells",
        "Expected",
        "The paper",
        "Mean loss, all cells",
    )
    lines = []
    for row in rows:
        claim, losses = row.verdict.claimed, row.losses
        cells = (
            escape(text.pair(claim) if claim.delta == DELTA or claim.delta == 0.0 else text.pair_up(claim)),
            escape(claim.neighbours.value),
            escape(pictures.exact(row)),
            f'<span class="verdict {"holds" if row.holds else "fails"}">{row.verdict.word}</span>',
            text.number(float(losses.valid.mean()), 3),
            "" if losses.expected_valid is None else text.number(losses.expected_valid, 3),
            "" if row.paper_mean is None else f"about {text.number(row.paper_mean)}",
            text.number(float(losses.whole.mean()), 3),
        )
        lines.append(_line(row, cells))
    return table(head, lines, "Mechanisms at this setting")


def _shape_table(result: UberResult) -> str:
    head = ("Mechanism", "Kurtosis, theory", "Kurtosis, observed", "Skewness, theory", "Skewness, observed")
    lines = []
    for row in result.paper:
        losses = row.losses
        cells = (
            "" if losses.kurtosis is None else text.number(losses.kurtosis),
            text.number(losses.observed_kurtosis),
            "" if losses.skewness is None else text.number(losses.skewness),
            text.number(losses.observed_skewness),
        )
        lines.append(_line(row, cells))
    return table(head, lines, "Shape of the loss over all cells")


def _line(row: StudyRow, cells: tuple[str, ...]) -> str:
    dot = f'<span class="dot" style="background:{pictures.colour(row)}"></span>'
    return f'<tr><th scope="row">{dot}{prose(row.label)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _of(rows: Rows, key: str) -> StudyRow:
    return next(row for row in rows if row.key == key)

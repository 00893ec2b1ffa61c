"""Words of the comparison on a synthetic city: curves and claims, maps, losses, and what rounding gives away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.guarantees import Bracket, Verdict
from lessnoise.report.html import count_word
from lessnoise_paper.experiments.demo import CONTROL, map_file
from lessnoise_paper.model import Picture, Words
from lessnoise_paper.sections.common import chip, claimed_list, raw_table_words, rows_table, verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings

_PUBLISHED = "r1smg-published"


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The demonstration's first paragraphs."""
    numbers = found["demo"]
    assert numbers is not None
    target, rows = numbers["target"], numbers["rows"]
    sentences = (
        f"A city wants to publish how many taxi pickups each of {math.prod(numbers['shape']):,} grid cells had, "
        "without giving any single pickup away.",
        f"Differential privacy promises that, in numbers: with epsilon = {text.number(target['epsilon'])} and "
        f"delta = {text.number(target['delta'])}, replacing any one pickup must hardly change what the public sees.",
        "A mechanism keeps the promise by adding noise, and less noise means a better map.",
        f"Below, {count_word(len(rows))} mechanisms release the same map, each with its exact delta, computed "
        "rather than trusted.",
        _outcome(rows),
    )
    mark = (
        f"The city and its {numbers['pickups']:,} pickups are synthetic. The releases use seed "
        f"{numbers['seed']}, so that you can repeat them: they are seeded, so not private."
    )
    return " ".join(sentences), mark


def _outcome(rows: list[Numbers]) -> str:
    kept = _kept(rows)
    failed = len(rows) - len(kept)
    if not kept:
        return "None of them is proved to keep its claim here."
    best = (
        f"{count_word(len(kept)).capitalize()} of them {'keeps its' if len(kept) == 1 else 'keep their'} promise, the "
        f"{kept[0]['label']} with the least noise ({text.number(kept[0]['standard_deviation'], 3)} per cell)"
    )
    return f"{best}, and {count_word(failed)} {'does' if failed == 1 else 'do'} not." if failed else f"{best}."


def curves(numbers: Numbers) -> Words:
    """Exact delta against epsilon for every mechanism, what it costs, and every claim."""
    rows, pair = numbers["rows"], _pair(numbers)
    kept, failing = _kept(rows), [row for row in rows if row["verdict_word"] != "holds"]
    best = kept[0] if kept else rows[0]
    head = (
        "Mechanism",
        "Claim",
        "Exact δ at its ε",
        "Verdict",
        "Noise per cell (sd)",
        "Expected loss",
        "Median loss",
    )
    lines = [
        (
            row["label"],
            row["colour"],
            (
                text.pair(verdict_of(row).claimed),
                text.exact_delta(verdict_of(row)),
                chip(row["verdict_word"]),
                text.number(row["standard_deviation"]),
                text.number(row["expected_loss"], 3),
                text.number(row["loss_quantiles"]["0.5"], 3),
            ),
        )
        for row in rows
    ]
    said = claimed_list(failing)
    return Words(
        setting=(
            f"Not in the paper: δ(ε), computed for every mechanism on {' x '.join(map(str, numbers['shape']))} counts "
            f"of a synthetic city; the target is {pair} for one pickup replaced (l2 sensitivity "
            f"{text.number(numbers['sensitivity'])}, l1 sensitivity {text.number(numbers['l1_sensitivity'])})."
        ),
        paper="",
        ours=(
            f"{len(kept)} of {len(rows)} keep their claim. The least noise per cell among them: {best['label']}, "
            f"{text.number(best['standard_deviation'], 3)}. {_cost_sentences(rows)}"
        ).strip(),
        fails=bool(failing),
        privacy=" ".join([*(_claim_sentence(row, numbers) for row in failing), f"The others hold at {pair}, proved."]),
        shows=(
            "A mechanism is not one (ε, δ) but a whole curve of them, and the curve is what can be computed. Each "
            "line is such a curve, proved from both sides; a circle is what is claimed, and an arrow leads from a "
            "claim that fails to the truth. A published claim is right if its circle lies on its curve or above."
        ),
        pictures=(
            Picture(
                "demo-curves.svg",
                f"Exact delta against epsilon, both logarithmic, target {pair}. {said}",
                f"Exact curves, with every claim. {said}",
            ),
            Picture(
                "demo-losses.svg",
                f"Expected losses; the smallest that keeps its promise is {best['label']} with "
                f"{text.number(best['expected_loss'], 3)}.",
                f"What the promise costs, at {pair} unless the label says otherwise; hatched: fails its claim.",
            ),
        ),
        tables=(rows_table(head, lines, "Mechanisms, claims and losses"),),
    )


def maps(numbers: Numbers) -> Words:
    """One release of each mechanism."""
    rows = numbers["rows"]
    failing = any(row["verdict_word"] != "holds" for row in rows)
    frame = " A red frame marks a mechanism that does not protect what it claims to, however clear its map is."
    highest = text.number(numbers["largest_count"])
    return Words(
        setting=f"One seeded release of each mechanism, as a map of {math.prod(numbers['shape']):,} cells.",
        paper="",
        ours="; ".join(f"{row['label']}: noise sd {text.number(row['standard_deviation'], 3)}" for row in rows) + ".",
        privacy=f"Under every map: what is claimed, and what is proved or exact.{frame if failing else ''}",
        fails=failing,
        shows=(
            "All maps share one logarithmic colour scale. Noise makes some counts negative; those are shown as 0, in "
            "the darkest colour, and counts above the true maximum in the brightest."
        ),
        pictures=(
            Picture("demo-scale.svg", f"Colour scale of the maps, from 1 pickup or less to {highest}.", "Colour scale"),
            Picture(
                "demo-truth.png",
                "The true counts: a bright tilted centre between two dark rivers, a second centre to the east, two "
                f"airports, roads and towns; at most {highest} in a cell.",
                f"{numbers['pickups']:,} synthetic pickups, at most {highest} in a cell",
                small=True,
                title="The truth",
            ),
            *(
                Picture(
                    map_file(row["key"]),
                    f"The counts released by {row['label']}, with noise of standard deviation "
                    f"{text.number(row['standard_deviation'], 3)} per cell.",
                    f"noise sd {text.number(row['standard_deviation'], 3)}; {text.privacy(verdict_of(row))}",
                    small=True,
                    title=row["label"],
                    failing=row["verdict_word"] != "holds",
                )
                for row in rows
            ),
        ),
    )


def spread(numbers: Numbers) -> Words:
    """How much one release varies."""
    rows = numbers["rows"]
    ranges = "; ".join(
        f"{row['label']}: {text.number(row['loss_quantiles']['0.05'], 3)} to "
        f"{text.number(row['loss_quantiles']['0.95'], 3)}"
        for row in rows
    )
    head = ("Mechanism", "5% of losses below", "Median", "95% of losses below", "Loss of the map shown")
    lines = [
        (
            row["label"],
            row["colour"],
            tuple(
                text.number(value, 3)
                for value in (*(row["loss_quantiles"][q] for q in ("0.05", "0.5", "0.95")), row["observed_loss"])
            ),
        )
        for row in rows
    ]
    return Words(
        setting="The loss of one release is the sum of the squared noise over all cells, so smaller is better.",
        paper="",
        ours=f"From the 5% to the 95% quantile: {ranges}.",
        privacy=f"Exact delta as in the comparison: {len(_kept(rows))} of {len(rows)} claims are proved.",
        fails=len(_kept(rows)) < len(rows),
        shows=(
            "These are exact quantiles of the loss, not a simulation. Independent noise in every cell makes the loss "
            "nearly the same each time; one random direction with one random length makes it vary widely."
        ),
        pictures=(
            Picture(
                "demo-spread.svg",
                f"Ranges of the loss of one release, from the 5% to the 95% quantile. {ranges}.",
                "Exact quantiles of the loss: 5% to 95% (bar), median (tick), mean (diamond), the map shown (circle).",
            ),
        ),
        tables=(rows_table(head, lines, "Losses of one release"),),
    )


def frontier(numbers: Numbers) -> Words:
    """The same promise for fewer entries."""
    points = numbers["frontier"]
    first = points[0]
    listed = "; ".join(f"M = {point['dimension']}: {text.number(point['least'], 3)}" for point in points)
    return Words(
        setting=f"The same promise {_pair(numbers)} for M entries, M from {first['dimension']} up.",
        paper="",
        ours=(
            f"The least noise has {text.number(first['least'], 3)} of the Gaussian's expected loss if M = "
            f"{first['dimension']}."
        ),
        privacy="Every mechanism in the picture keeps the promise exactly, by its own curve.",
        shows=(
            f"The map has {math.prod(numbers['shape']):,} cells, where no mechanism for the same l2 sensitivity gains "
            "much on the Gaussian. For fewer entries much of its noise is unnecessary."
        ),
        pictures=(
            Picture(
                "demo-frontier.svg",
                f"Expected loss relative to the analytic Gaussian's, by number of entries. Least noise: {listed}.",
                f"Expected loss relative to the analytic Gaussian's, by number of entries. Least noise: {listed}.",
            ),
        ),
    )


def attack(numbers: Numbers) -> Words:
    """What rounding gives away."""
    rows = {row["key"]: row for row in numbers["rows"]}
    found = numbers["reconstructions"]
    return raw_table_words(found, claimed_list([rows[one["key"]] for one in found]))


# Pieces.


def _pair(numbers: Numbers) -> str:
    return f"({text.number(numbers['target']['epsilon'])}, {text.number(numbers['target']['delta'])})"


def _kept(rows: list[Numbers]) -> list[Numbers]:
    return [row for row in rows if row["verdict_word"] == "holds"]


def _claim_sentence(row: Numbers, numbers: Numbers) -> str:
    verdict: Verdict = verdict_of(row)
    claim, target, mechanism = verdict.claimed, numbers["target"], row["mechanism"]
    kind = "R1SMG calibration" if row["key"].startswith(_PUBLISHED) else row["label"]
    source = "" if mechanism["claim"] is None else f" ({mechanism['claim']['source']})"
    truth = f"the exact delta at that epsilon is {text.exact(verdict.exact)}"
    if verdict.refuted and claim.delta > 0.0:
        truth += f", about {text.multiple(verdict.exact.lower / claim.delta)} times the claim"
    sentence = f"The published {kind}{source} claims {text.pair(claim)}; {truth}."
    if claim.epsilon != target["epsilon"]:
        at_target = Bracket.from_dict(row["exact_delta_at_target_epsilon"])
        sentence += f" At the promised epsilon = {text.number(target['epsilon'])} it is {text.exact(at_target)}."
    limit, words = _stated_range(row)
    if claim.epsilon >= limit:
        sentence += f" In fairness, its source states the claim only for {words}, so this setting lies outside it."
    return sentence


def _stated_range(row: Numbers) -> tuple[float, str]:
    """The epsilon up to which a source states its claim, and how it says so."""
    if row["key"].startswith(_PUBLISHED):
        limit = 1.0 / math.prod(row["mechanism"]["shape"])
        return limit, f"epsilon below 1/M = {text.number(limit, 3)}, M being the number of cells"
    return (1.0, "epsilon below 1") if row["key"] == "classic-gaussian" else (math.inf, "")


def _cost_sentences(rows: list[Numbers]) -> str:
    """Comparisons that the numbers of this very run support."""
    kept, by_key = _kept(rows), {row["key"]: row for row in rows}
    found = []
    if kept and kept[0]["key"] == "laplace":
        found.append(
            "Replacing one pickup changes at most two cells, by one each. Laplace noise, which measures that change in "
            "l1, makes the most of it here and needs no delta at all."
        )
    exact, control = by_key["r1smg"], by_key[CONTROL]
    if exact in kept and exact["expected_loss"] > control["expected_loss"]:
        found.append(
            "R1SMG draws all its noise along one random direction. Calibrated exactly, it does keep the promise, at "
            f"{text.multiple(exact['expected_loss'] / control['expected_loss'])} times the expected loss of the "
            f"{control['label']}."
        )
    claimed = by_key.get(f"{_PUBLISHED}-paper", by_key[_PUBLISHED])
    if kept and claimed not in kept and kept[0]["expected_loss"] < claimed["expected_loss"]:
        found.append(
            f"The {kept[0]['label']} keeps its promise and still has a smaller expected loss than the published R1SMG "
            f"at {text.pair(verdict_of(claimed).claimed)}, which does not: {text.number(kept[0]['expected_loss'])} "
            f"against {text.number(claimed['expected_loss'])}."
        )
    return " ".join(found)

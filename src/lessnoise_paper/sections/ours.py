"""Words of what the paper does not have: the record of claims, the least noise, audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.audit.report import percent as down_percent
from lessnoise_paper.model import Picture, Words
from lessnoise_paper.sections.common import chip, claimed_list, listed, rows_table, verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of the report."""
    lede = (
        "Ji and Li's paper “Less is More” proposes R1SMG, Gaussian noise along one random direction, and reports "
        "that it protects data with far less noise than other mechanisms. This page repeats every figure and table "
        "of the paper, and puts beside each the exact privacy of what is shown, computed rather than trusted. Then "
        "come comparisons at equal exact privacy, and what less noise can really achieve."
    )
    data = (
        "This is a quick run: it uses embedded data only, a synthetic city and scikit-learn's digits instead of the "
        "paper's, and fewer repetitions."
        if settings.quick
        else "This is a full run on public data."
    )
    mark = (
        f"{data} The releases on this page are demonstrations drawn with seed {settings.seed}, so that you can "
        "repeat them. Seeded releases are not private, whatever their mechanism guarantees."
    )
    return lede, mark


def claims(numbers: Numbers) -> Words:
    """The record of claims."""
    rows = numbers["rows"]
    failing = [row for row in rows if row["verdict_word"] == "fails"]
    names = list(dict.fromkeys(row["mechanism"] for row in failing))
    head = ("Mechanism", "Setting", "Claim", "Exact δ", "Verdict", "Noise / needed", "Source")
    lines = [
        (
            row["mechanism"],
            None,
            (
                f"{row['setting']}{' (' + row['remark'] + ')' if row['remark'] else ''}",
                text.pair(verdict_of(row).claimed),
                text.exact_delta(verdict_of(row)),
                chip(row["verdict_word"]),
                "" if row["noise_ratio"] is None else text.number(row["noise_ratio"], 3),
                row["claimed"]["source"],
            ),
        )
        for row in rows
    ]
    return Words(
        setting="Not in the paper: what sources claim of their mechanisms, each at a setting of its source.",
        paper="",
        fails=bool(failing),
        ours=f"{len(rows)} claims; {len(failing)} fail, of {listed(names) if names else 'none'}.",
        privacy=(
            "Every line has the claimed and the exact delta at the claimed epsilon; wide brackets show their proved "
            "end."
        ),
        shows=(
            "Noise / needed is the published noise over the least noise of the same law that keeps the claim: above "
            "1 the source adds more than it must, below 1 less. Many claims are generous. Those that fail do so by "
            "little where a theorem is used beyond its range, and by orders of magnitude where a proof is wrong."
        ),
        pictures=(
            Picture(
                "claims.svg",
                f"Claimed and exact delta of {len(rows)} claims; {len(failing)} fail.",
                f"Claimed delta (circle) and exact delta (cross) of every claim; {len(failing)} of {len(rows)} fail.",
            ),
        ),
        tables=(rows_table(head, lines, "The record of claims"),),
    )


def frontier(numbers: Numbers) -> Words:
    """How little noise is enough."""
    points = numbers["points"]
    best = min(points, key=lambda point: point["least"])
    tight = min(points, key=lambda point: point["bound"] / point["least"])
    head = ("M", "ε", "l2 / Gaussian", "Least noise / Gaussian", "Proved: no less than", "Kind of noise")
    lines = [
        (
            f"{point['dimension']:,}",
            None,
            (
                text.number(point["epsilon"]),
                text.number(point["l2"], 3),
                text.number(point["least"], 3),
                text.at_least(point["bound"], 3),
                point["choice"],
            ),
        )
        for point in points
    ]
    delta = text.number(numbers["delta"])
    where = f"M = {best['dimension']:,} and ε = {text.number(best['epsilon'])}"
    saved = text.number(1.0 / best["least"], 3)
    return Words(
        setting=(
            f"Not in the paper: the least expected loss that keeps (ε, {delta}), relative to the analytic Gaussian's."
        ),
        paper="",
        ours=(
            f"At {where} the least noise has {text.number(best['least'], 3)} of the Gaussian's loss, {saved} times "
            "less. It is proved that no additive mechanism has less than the edge of the grey area; the largest gap "
            f"is at M = {tight['dimension']:,}, ε = {text.number(tight['epsilon'])}, where the bound is "
            f"{text.at_least(tight['bound'] / tight['least'], 3)} of what we have."
        ),
        privacy=(
            f"Every mechanism in the picture is exactly (ε, {delta})-private at the epsilon of its panel, by its own "
            "curve."
        ),
        shows=(
            "Less noise than the Gaussian's is possible, and this is where: for few entries, and for large epsilon. "
            "For many entries and a small epsilon the Gaussian is nearly the best there is, for noise of any rank. "
            "The promise of the paper's title can be kept, but not at its settings."
        ),
        pictures=(
            Picture(
                "frontier.svg",
                f"Loss relative to the Gaussian against M; least noise reaches {text.number(best['least'], 3)} at "
                f"{where}.",
                f"Expected loss relative to the analytic Gaussian's at equal exact (ε, {delta}); grey is proved "
                "impossible.",
            ),
        ),
        tables=(rows_table(head, lines, "The least noise and its bound"),),
        headline=(
            f"Less noise is possible where the promise allows it: at {where} the least noise has 1/{saved} of the "
            "Gaussian's loss, exactly calibrated, with a proof of how little is left to gain."
        ),
    )


def attacks(numbers: Numbers) -> Words:
    """Audits."""
    rows = numbers["rows"]
    refuted = [row for row in rows if row["audit"]["refuted"]]
    first = rows[0]
    confidence = down_percent(first["audit"]["confidence"])
    head = ("Mechanism", "M", "Claim", "Proved by attack: δ ≥", "Attack", "Exact δ", "Releases", "Verdict")
    lines = [
        (
            row["label"],
            None,
            (
                str(row["dimension"]),
                text.pair(verdict_of(row).claimed),
                text.at_least(row["audit"]["delta"], 3),
                row["audit"]["delta_attack"],
                text.exact_delta(verdict_of(row)),
                f"{row['audit']['trained'] + row['audit']['tested']:,}",
                chip("refuted" if row["audit"]["refuted"] else "not refuted"),
            ),
        )
        for row in rows
    ]
    return Words(
        setting=(
            "Not in the paper: attacks that are told nothing but releases. A fair coin chooses one of two "
            "neighbouring values, the attacker guesses which it was."
        ),
        paper="",
        ours=(
            f"{len(refuted)} of {len(rows)} claims are refuted, each with {confidence} confidence. Published R1SMG at "
            f"M = {first['dimension']}: delta at least {text.at_least(first['audit']['delta'], 3)}, where "
            f"{text.number(verdict_of(first).claimed.delta)} is claimed."
        ),
        fails=any(row["verdict"] == "fails" for row in rows),
        privacy=claimed_list(rows),
        shows=(
            "What an attack proves is a lower bound: it can refute a claim, and never confirms one. For claims that "
            "hold, the bound stays below the claim, as it must; for those that fail by much it comes close to the "
            "exact delta, which was computed without any release. Two independent routes to the same number."
        ),
        pictures=(
            Picture(
                "attacks.svg",
                f"Claimed, proved and exact delta of {len(rows)} mechanisms; {len(refuted)} claims are refuted.",
                f"Claimed delta (circle), what seeded attacks prove with {confidence} confidence (triangle), and the "
                "exact delta (bar).",
            ),
        ),
        tables=(rows_table(head, lines, "What attacks prove"),),
    )

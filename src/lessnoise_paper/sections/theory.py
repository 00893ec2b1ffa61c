"""Words of table 1 and figures 1, 2, 3 and 9."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.audit.report import percent as down_percent
from lessnoise.guarantees import Bracket
from lessnoise_paper.model import Picture, Words
from lessnoise_paper.sections.common import chip, count_query, fact, percent, rows_table, titled, verdict_of

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers

_FORMULAS = {
    "classic-gaussian": "C_C = 2 ln(1.25/δ) M/ε²",
    "analytic-gaussian": "C_A = (Φ⁻¹(δ)² + ε) M/ε²",
    "mvg": "C_M = (5/4 H_r + 1/4 H_{r,1/2}) MN/(2ε)",
    "r1smg": "C_R = 2/(ε ψ)",
}
_STABILITY = {"classic-gaussian": "unstable", "analytic-gaussian": "unstable", "mvg": "unstable", "r1smg": "stable"}
"""Table 1, last column."""


def table_1(numbers: Numbers) -> Words:
    """The comparison of the mechanisms."""
    rows = {row["key"]: row for row in numbers["rows"]}
    setting, r1smg, analytic = numbers["setting"], rows["r1smg"], rows["analytic-gaussian"]
    verdict = verdict_of(r1smg)
    cells = math.prod(setting["shape"])
    head = (
        *("Mechanism", "The paper's constant, E ≥ C Δ²", "C Δ² here", "Loss as published", "Exact δ", "Claim"),
        "Loss that keeps the claim",
    )
    stability = ("Mechanism", "The paper says", "Kurtosis", "Skewness", "99.9% of losses below")
    lines = [
        (
            row["label"],
            row["colour"],
            (
                _FORMULAS[row["key"]],
                text.number(row["constant"], 3),
                text.number(row["expected_loss"], 3),
                text.exact_delta(verdict_of(row)),
                chip(row["verdict"]),
                text.number(row["exact_loss"], 3),
            ),
        )
        for row in numbers["rows"]
    ]
    stable_lines = [
        (
            row["label"],
            row["colour"],
            (
                _STABILITY[row["key"]],
                text.number(row["kurtosis"], 4),
                text.number(row["skewness"], 4),
                f"{text.number(row['tail'], 3)} times the mean",
            ),
        )
        for row in numbers["rows"]
    ]
    short = text.multiple(r1smg["exact_loss"] / r1smg["expected_loss"])
    return Words(
        setting=(
            "Table 1 compares expected losses E[L], L the summed squared noise, by constants C with E[L] ≥ C Δ². We "
            f"evaluate them where the paper uses R1SMG: {cells:,} counts, ε = {text.number(setting['epsilon'])}, δ = "
            f"{text.number(setting['delta'])}, Δ² = {text.number(setting['sensitivity'] ** 2)}."
        ),
        paper=(
            "C_R is smaller than C_C and C_A by a factor of order M, and R1SMG is called stable because its loss has "
            "kurtosis 35/3 and skewness 5/√3 (Theorems 8 and 9). Both are of moments about zero, E[L⁴]/E[L²]² and "
            "E[L³]/E[L²]^1.5."
        ),
        ours=(
            f"C_R Δ² = {text.number(r1smg['constant'], 3)}, and that is indeed what R1SMG adds. Noise of its kind "
            f"that keeps the claim adds {text.number(r1smg['exact_loss'], 3)}, {short} times as much, and "
            f"{text.multiple(r1smg['exact_loss'] / analytic['exact_loss'])} times as much as the Gaussian's "
            f"{text.number(analytic['exact_loss'], 3)}. Kurtosis {text.number(r1smg['kurtosis'])} and skewness "
            f"{text.number(r1smg['skewness'])} are as the paper says."
        ),
        privacy=(
            f"R1SMG as published claims {text.pair(verdict.claimed)}; its exact delta at that epsilon is "
            f"{text.exact_delta(verdict)}. The other three keep their claims; the column of exact deltas shows with "
            "how much to spare. Neighbours replace one pickup."
        ),
        shows=(
            f"{_below_the_gaussian(rows)} C_A is printed as a lower bound but is a sufficient variance: the analytic "
            f"Gaussian loses {text.number(analytic['exact_loss'] / analytic['constant'], 2)} of it. A large "
            "kurtosis means a heavy tail, not a stable loss: one release in a thousand loses "
            f"more than {text.number(r1smg['tail'], 3)} times the mean with R1SMG, and "
            f"{text.number(analytic['tail'], 3)} times with the Gaussian; and one in a thousand loses less than "
            f"{text.number(r1smg['low'], 2)} of the mean, which is when data leak."
        ),
        pictures=(
            Picture(
                "table-1.svg",
                f"Expected losses on one axis. R1SMG: {text.number(r1smg['expected_loss'], 3)} as published, "
                f"{text.number(r1smg['exact_loss'], 3)} to keep its claim.",
                "Expected loss: the paper's constant (circle), what the published calibration adds (diamond), and "
                f"what noise of this kind must add to keep the claim (cross). {_short_privacy(r1smg)}",
            ),
        ),
        tables=(
            titled("Losses", rows_table(head, lines, "Table 1 with exact values")),
            titled("Stability", rows_table(stability, stable_lines, "Table 1: stability of the loss")),
        ),
        facts=(fact(count_query(setting["shape"]), r1smg),),
        fails=True,
    )


def _below_the_gaussian(rows: dict[str, Numbers]) -> str:
    """Which constants promise less noise than the Gaussian needs, and what becomes of the promise."""
    mvg, needed = rows["mvg"], rows["analytic-gaussian"]["exact_loss"]
    if mvg["constant"] >= needed:
        return "Of the four constants only C_R promises less noise than the Gaussian needs, and only R1SMG fails."
    return (
        f"Two of the four constants promise less noise than the Gaussian needs, {text.number(needed, 3)}: C_M and "
        f"C_R. What MVG's own theorem adds is {text.multiple(mvg['expected_loss'] / mvg['constant'])} times C_M Δ², "
        f"and keeps its claim. R1SMG adds what C_R says, and is the only one of the four that fails its claim."
    )


def _short_privacy(row: Numbers) -> str:
    verdict = verdict_of(row)
    return f"R1SMG as published: claimed {text.pair(verdict.claimed)}, exact delta {text.exact_delta(verdict)}."


def figure_1(numbers: Numbers) -> Words:
    """The geometry of the proof."""
    verdict = verdict_of(numbers)
    theta0, median = math.degrees(numbers["theta0"]), math.degrees(numbers["median_angle"])
    share = numbers["event_draws"] / numbers["draws"]
    return Words(
        setting=(
            "Figure 1 shows the triangle of the proof of Theorem 5: f(x), f(x') and the output s. The proof needs "
            f"the angle at s within θ₀ = {text.number(theta0, 3)}° of a right angle, at M = "
            f"{math.prod(numbers['setting']['shape']):,} and δ = {text.number(verdict.claimed.delta)}."
        ),
        paper=(
            "By Lemma 2, on the angle between two independent directions, this holds with probability at least 1 - "
            "δ, so that the two sides together are shorter than 2Δ/cos θ₀."
        ),
        ours=(
            "The lemma is right: for independent directions the probability to miss is "
            f"{text.number(numbers['lemma_exact'], 3)}, below its bound {text.number(numbers['lemma_bound'], 3)}. But "
            "the two sides of the triangle are not independent. They end in points that are Δ apart, so for long "
            "noise they are nearly parallel. The probability that the proof needs to be 1 - "
            f"{text.number(verdict.claimed.delta)} is at most {text.at_most(numbers['event_bound'], 3)}; of "
            f"{numbers['draws']:,} seeded draws {numbers['event_draws']:,} ({percent(share, 2)}) were in the range."
        ),
        privacy=(
            f"R1SMG as published claims {text.pair(verdict.claimed)} by this proof; the exact delta at that epsilon "
            f"is {text.exact_delta(verdict)}."
        ),
        fails=True,
        shows=(
            f"Each dot is one draw of the published noise. Half of them have an angle below {text.number(median, 2)}° "
            f"at the output, for a noise {text.number(numbers['median_length'], 3)} times as long as the sensitivity. "
            "The blue band is where the proof needs all of them. This is the step at which the argument breaks: all "
            "that follows in the paper, from the constant C_R to the case studies, has the noise of this calibration."
        ),
        pictures=(
            Picture(
                "angle.svg",
                "Left: the triangle as drawn in the proof, and as it mostly is, long and thin. Right: angles at the "
                f"output in seeded draws, median {text.number(median, 2)} degrees instead of 90.",
                "Angle at the output against the length of the noise, both logarithmic, for published R1SMG. "
                f"{_short_privacy(numbers)}",
            ),
        ),
    )


def figure_2(numbers: Numbers) -> Words:
    """The constraint on epsilon."""
    rows, limit = numbers["rows"], numbers["limit"]
    inside = [row for row in rows if row["epsilon"] < limit]
    smallest, largest = rows[0], rows[-1]
    least = min(inside, key=lambda row: row["exact"]["lower"])
    worst = max(inside, key=lambda row: row["exact"]["lower"])
    return Words(
        setting=(
            "Figure 2 and Remark 1 explain why R1SMG is stated for ε below 1/M: else the two noises are too short to "
            f"form a triangle with the shift. Here M = {numbers['dimension']}, so 1/M = {text.number(limit, 3)}, and "
            f"δ = {text.number(numbers['delta'])}."
        ),
        paper="Below 1/M the mechanism is said to be (ε, δ)-private; above, no claim is made.",
        ours=(
            f"Calibrated as published for ε = {text.number(smallest['epsilon'])}, the exact delta is "
            f"{_delta(smallest)}; it grows to {_delta(worst)} "
            f"just below 1/M, and is {text.at_least(largest['exact']['lower'], 3)} or more at ε = "
            f"{text.number(largest['epsilon'])}."
        ),
        privacy=(
            f"R1SMG: exact delta from {_delta(least)} to {_delta(worst)} over the stated "
            f"range, where {text.number(numbers['delta'])} "
            f"is claimed. The analytic Gaussian keeps {text.number(numbers['delta'])} at every epsilon shown."
        ),
        fails=True,
        shows=(
            "The limit 1/M does not separate a range where the claim holds from one where it fails: it fails on both "
            "sides. The noise is always longer than the shift, and that does not help: the density of R1SMG falls "
            "with the distance r like r^(1-M), so that even a small difference of two distances tells the two "
            "answers apart. The Gaussian that keeps the same promise is "
            f"{text.multiple(rows[0]['gaussian_length'] / rows[0]['length'])} times as long at ε = "
            f"{text.number(rows[0]['epsilon'])}."
        ),
        pictures=(
            Picture(
                "range-of-epsilon.svg",
                "Left: length of the noise against epsilon. Right: exact delta of published R1SMG, at least "
                f"{text.at_least(least['exact']['lower'], 2)} everywhere, far above the claimed "
                f"{text.number(numbers['delta'])}.",
                "R1SMG calibrated as published for each epsilon; grey: outside the range of its claim. Exact delta: "
                f"{_delta(smallest)} at the left end, claimed "
                f"{text.number(numbers['delta'])}.",
            ),
        ),
    )


def _delta(row: Numbers) -> str:
    return text.exact(Bracket.from_dict(row["exact"]), 3)


def figure_3(numbers: Numbers) -> Words:
    """The null space, and the attack that does not need it."""
    verdict, found = verdict_of(numbers), numbers["audit"]
    releases = found["trained"] + found["tested"]
    cells, proved = math.prod(numbers["setting"]["shape"]), text.at_least(found["delta"], 3)
    return Words(
        setting=(
            "Figure 3 shows the directions v = (-1, 2)/√5 and (1, -1, 1)/√3 with their null spaces. A vector u in "
            "the null space of the noise would return ⟨u, s⟩ = ⟨u, f(x)⟩ without noise."
        ),
        paper="v is random and secret, so the probability to guess such a vector is zero (section 5.4).",
        ours=(
            f"That is true: {numbers['guesses']:,} guessed vectors hit the null space "
            f"{numbers['guesses_in_null_space']} times. But an attacker need not look for one. It is enough to know "
            f"f(x) and f(x'), and to ask which of them is nearer to the output. In {releases:,} seeded releases of "
            f"{cells:,} counts this question proves, with {down_percent(found['confidence'])} confidence, a delta of "
            f"at least {proved}, where {text.number(verdict.claimed.delta)} is claimed."
        ),
        privacy=(
            f"R1SMG as published: claimed {text.pair(verdict.claimed)}, exact delta {text.exact_delta(verdict)}; "
            f"proved by this attack alone: at least {proved}."
        ),
        fails=True,
        shows=(
            "One attack that fails is no proof of privacy. Differential privacy is a statement about all attacks at "
            "once, and the exact delta is the success of the best one. The comparison of two distances comes within "
            f"{percent(1.0 - found['delta'] / verdict.exact.upper, 2)} of it, and the output is nearer to its own "
            f"answer in {percent(numbers['nearer_to_its_own'])} of the releases."
        ),
        pictures=(
            Picture(
                "null-space.svg",
                "Left and middle: a direction on the circle and on the sphere with its null space. Right: the "
                "logarithm of two distances separates releases of neighbouring tables; the attack proves delta at "
                f"least {proved}.",
                "Left, middle: the paper's directions and null spaces. Right: which of the two answers is nearer, "
                f"for seeded releases of both at the paper's setting. {_short_privacy(numbers)}",
            ),
        ),
    )


def figure_9(numbers: Numbers) -> Words:
    """Expected loss against M."""
    rows = numbers["rows"]
    epsilon = max(numbers["epsilons"])
    chosen = [row for row in rows if row["epsilon"] == epsilon]
    first, last = chosen[0], chosen[-1]
    least, most = (pick(rows, key=lambda row: row["r1smg_delta"]) for pick in (min, max))
    claimed, epsilons = text.number(numbers["delta"]), ", ".join(map(text.number, numbers["epsilons"]))
    head = ("M", "R1SMG, published", "its exact δ", "classic Gaussian", "analytic, exact", "analytic, the paper's C_A")
    shown = chosen[:: max(1, len(chosen) // 6)]
    lines = [
        (
            f"{row['dimension']:,}",
            None,
            (
                text.number(row["r1smg"], 3),
                text.at_most(row["r1smg_delta"], 3),
                *(text.number(row[key], 3) for key in ("classic", "analytic_exact", "analytic_published")),
            ),
        )
        for row in shown
    ]
    return Words(
        setting=(
            f"Figure 9 (appendix B): Δ = 1, M from {first['dimension']} to {last['dimension']:,}, ε = {epsilons}, δ = "
            f"{claimed}."
        ),
        paper="The Gaussian losses grow with M; R1SMG's falls and tends to 2/ε.",
        ours=(
            f"The same curves: at ε = {text.number(epsilon)} R1SMG's loss falls from {text.number(first['r1smg'], 3)} "
            f"to {text.number(last['r1smg'], 3)}, and 2/ε = {text.number(2.0 / epsilon)}; the analytic Gaussian's "
            f"grows from {text.number(first['analytic_exact'], 3)} to {text.number(last['analytic_exact'], 3)}."
        ),
        privacy=(
            f"R1SMG as published, claimed delta {claimed}: exact delta from {text.at_most(least['r1smg_delta'], 2)} "
            f"to {text.at_most(most['r1smg_delta'], 3)}. The two Gaussians keep {claimed}."
        ),
        fails=True,
        shows=(
            f"The falling curve is bought with privacy. As M grows from {first['dimension']} to "
            f"{last['dimension']:,}, the exact delta at ε = {text.number(epsilon)} grows from "
            f"{text.at_most(first['r1smg_delta'], 2)} to {text.at_most(last['r1smg_delta'], 2)}, up to "
            f"{text.multiple(most['r1smg_delta'] / numbers['delta'])} times the claim. A noise of constant length in "
            "ever more dimensions hides ever less."
        ),
        pictures=(
            Picture(
                "loss-against-dimension.svg",
                f"Above: expected loss against M; R1SMG falls to {text.number(last['r1smg'], 3)}, the Gaussians grow. "
                f"Below: the exact delta of R1SMG grows to {text.at_most(most['r1smg_delta'], 2)}; {claimed} is "
                "claimed.",
                "Expected loss against M, and below it the exact delta of published R1SMG on the same axis; solid, "
                f"dashed, dotted: ε = {epsilons}. Exact delta up to {text.at_most(most['r1smg_delta'], 3)}, claimed "
                f"{claimed}.",
            ),
        ),
        tables=(rows_table(head, lines, f"Expected losses at epsilon {text.number(epsilon)}"),),
        headline=(
            f"R1SMG's expected loss falls as M grows because its privacy goes: at ε = {text.number(epsilon)} the "
            f"exact delta grows to {text.at_most(last['r1smg_delta'], 2)}, where {claimed} is claimed."
        ),
    )

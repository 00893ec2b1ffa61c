"""Words of table 1 and figures 1, 2, 3 and 9."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise_paper.sections.wording import Wording, titled

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Words

_TABLE_1 = {
    "classic-gaussian": ("$C_C = 2 ln(1.25/δ) M/ε²$", "unstable"),
    "analytic-gaussian": ("$C_A = (Φ⁻¹(δ)² + ε) M/ε²$", "unstable"),
    "mvg": ("$C_M = (5/4 H_r + 1/4 H_(r,1/2)) MN/(2ε)$", "unstable"),
    "r1smg": ("$C_R = 2/(ε ψ)$", "stable"),
}
"""Its constants, and its last column."""


def table_1(numbers: Numbers) -> Words:
    """The comparison of the mechanisms."""
    rows = {row["key"]: row for row in numbers["rows"]}
    setting, r1smg, analytic = numbers["setting"], rows["r1smg"], rows["analytic-gaussian"]
    only = rows["mvg"]["constant"] >= analytic["exact_loss"]
    added = rows["mvg"]["expected_loss"] / rows["mvg"]["constant"]
    say = Wording(
        "theory",
        "table-1",
        numbers,
        r1smg=r1smg,
        analytic=analytic,
        cells=math.prod(setting["shape"]),
        squared=setting["sensitivity"] ** 2,
        short=r1smg["exact_loss"] / r1smg["expected_loss"],
        more=r1smg["exact_loss"] / analytic["exact_loss"],
        share=analytic["exact_loss"] / analytic["constant"],
        below=Wording("theory", "table-1", analytic=analytic, added=added)("only-r1smg" if only else "two-below"),
        near=numbers["bound"] / analytic["exact_loss"],
        under=numbers["bound"] / r1smg["expected_loss"],
    )
    lines = [
        {**row, "formula": formula, "stability": stability}
        for row, (formula, stability) in ((row, _TABLE_1[row["key"]]) for row in numbers["rows"])
    ]
    tables = [titled(title, say.table(title.lower(), lines)) for title in ("Losses", "Stability")]
    return say.words(fails=True, tables=tables, facts=say.facts("fact"))


def figure_1(numbers: Numbers) -> Words:
    """The geometry of the proof."""
    return Wording(
        "theory",
        "fig-1",
        {**numbers, "numbers": numbers},
        degrees=math.degrees(numbers["theta0"]),
        median=math.degrees(numbers["median_angle"]),
        share=numbers["event_draws"] / numbers["draws"],
        cells=math.prod(numbers["setting"]["shape"]),
    ).words(fails=True)


def figure_2(numbers: Numbers) -> Words:
    """The constraint on epsilon."""
    rows = numbers["rows"]
    inside = [row for row in rows if row["epsilon"] < numbers["limit"]]
    return Wording(
        "theory",
        "fig-2",
        numbers,
        smallest=rows[0],
        largest=rows[-1],
        least=min(inside, key=lambda row: row["exact"]["lower"]),
        worst=max(inside, key=lambda row: row["exact"]["lower"]),
        beyond=numbers["meeting"]["r1smg"] / numbers["limit"],
        longer=rows[0]["gaussian_length"] / rows[0]["length"],
    ).words(fails=True)


def figure_3(numbers: Numbers) -> Words:
    """The null space, and the attack that does not need it."""
    found = numbers["audit"]
    return Wording(
        "theory",
        "fig-3",
        {**numbers, "numbers": numbers},
        releases=found["trained"] + found["tested"],
        cells=math.prod(numbers["setting"]["shape"]),
        missed=1.0 - found["delta"] / numbers["exact"]["upper"],
    ).words(fails=True)


def figure_9(numbers: Numbers) -> Words:
    """Expected loss against M."""
    rows = numbers["rows"]
    epsilon = max(numbers["epsilons"])
    chosen = [row for row in rows if row["epsilon"] == epsilon]
    least, most = (pick(rows, key=lambda row: row["r1smg_delta"]) for pick in (min, max))
    say = Wording(
        "theory",
        "fig-9",
        numbers,
        epsilon=epsilon,
        first=chosen[0],
        last=chosen[-1],
        least=least,
        most=most,
        limit=2.0 / epsilon,
        proved=chosen[-1]["any_rank"] / chosen[-1]["analytic_exact"],
        listed=", ".join(map(text.number, numbers["epsilons"])),
        ratio=most["r1smg_delta"] / numbers["delta"],
    )
    return say.words(fails=True, tables=[say.table("table", chosen[:: max(1, len(chosen) // 6)])])

"""Words of the paper's section 4, Property 1, Remark 2 and appendix A, and of loss against rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.sections.wording import Wording

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Words


def clue(numbers: Numbers) -> Words:
    """Proposition 1 and the clue of section 4."""
    found, setting, random = numbers["eigenvalues"], numbers["setting"], numbers["random_direction"]
    say = Wording(
        "remarks",
        "clue",
        {**numbers, "numbers": numbers},
        least=min(found),
        most=max(found),
        times=random["upper"] / setting["delta"],
        more=numbers["needed"] / numbers["gaussian_loss"],
    )
    single, delta = numbers["single_variance"], setting["delta"]
    lines = [
        {"noise": say("fixed"), "change": say("along"), "loss": single, "low": delta, "high": delta},
        {"noise": say("fixed"), "change": say("other"), "loss": single, "low": 1.0, "high": 1.0},
        {
            "noise": say("random"),
            "change": say("every"),
            "loss": single,
            "low": random["lower"],
            "high": random["upper"],
        },
        {"noise": say("exact"), "change": say("every"), "loss": numbers["needed"], "low": delta, "high": delta},
        {"noise": say("full"), "change": say("every"), "loss": numbers["gaussian_loss"], "low": delta, "high": delta},
    ]
    return say.words(fails=True, tables=[say.table("table", [{**line, "colour": None} for line in lines])])


def property_1(numbers: Numbers) -> Words:
    """Many dependent queries."""
    rows = numbers["rows"]
    say = Wording(
        "remarks",
        "property-1",
        numbers,
        first=rows[0],
        last=rows[-1],
        fewer=rows[-1]["gaussian"] / rows[-1]["span"],
    )
    return say.words(fails=rows[-1]["verdict"] == "fails", tables=[say.table("table", rows)])


def remark_2(numbers: Numbers) -> Words:
    """Moments of the loss, about zero and about the mean."""
    rows = numbers["rows"]
    say = Wording("remarks", "remark-2", {**numbers, "numbers": numbers}, one=rows[0], all=rows[-1])
    return say.words(fails=True, tables=[say.table("table", [row for row in rows if row["rank"] != 3])])


def appendix_a(numbers: Numbers) -> Words:
    """The chain of inequalities behind C_M."""
    rows = numbers["rows"]
    say = Wording(
        "remarks",
        "appendix-a",
        {**numbers, "numbers": numbers},
        equal=dict(zip("defgh", rows[0]["median"], strict=True)),
        matrices=sum(row["matrices"] for row in rows),
        smallest=min(min(row["least"]) for row in rows),
        above=numbers["least_harmonic"] - 1.0,
    )
    lines = [{"spread": row["spread"], **dict(zip("defgh", row["median"], strict=True))} for row in rows]
    return say.words(tables=[say.table("table", lines)])


def rank(numbers: Numbers) -> Words:
    """Loss against rank, at equal exact privacy."""
    rows = {row["rank"]: row for row in numbers["rows"]}
    first, last = numbers["rows"][0], numbers["rows"][-1]
    off = max(abs(row["simulated"] - row["exact"]["upper"]) / row["error"] for row in numbers["rows"])
    say = Wording(
        "remarks",
        "rank",
        {**numbers, "numbers": numbers},
        first=first,
        two=rows.get(2, first),
        ten=rows.get(10, last),
        off=off,
    )
    return say.words(fails=True, tables=[say.table("table", numbers["rows"])])

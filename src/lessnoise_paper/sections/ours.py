"""Words of what the paper does not have: the record of claims, the least noise, audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.sections.wording import Wording, claimed_list, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings, Words


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of the report."""
    say = Wording("ours", "introduce", seed=settings.seed)
    return say("lede"), say("mark", data=say("quick" if settings.quick else "full"))


def claims(numbers: Numbers) -> Words:
    """The record of claims."""
    rows = [
        {**row, "remarked": f" ({row['remark']})" if row["remark"] else "", "colour": None} for row in numbers["rows"]
    ]
    failing = [row["mechanism"] for row in rows if row["verdict_word"] == "fails"]
    names = listed(list(dict.fromkeys(failing))) if failing else "none"
    say = Wording("ours", "claims", count=len(rows), failing=len(failing), names=names)
    return say.words(fails=bool(failing), tables=[say.table("table", rows)])


def frontier(numbers: Numbers) -> Words:
    """How little noise is enough."""
    points = numbers["points"]
    best = min(points, key=lambda point: point["least"])
    tight = min(points, key=lambda point: point["bound"] / point["least"])
    wide = max(points, key=lambda point: (point["dimension"], -point["epsilon"]))
    say = Wording(
        "ours",
        "frontier",
        numbers,
        best=best,
        saved=1.0 / best["least"],
        where=Wording("ours", "frontier", best=best)("where"),
        tight=tight,
        wide=wide,
        gap=tight["bound"] / tight["least"],
    )
    return say.words(tables=[say.table("table", points)])


def attacks(numbers: Numbers) -> Words:
    """Audits."""
    rows = [
        {
            **row,
            "releases": row["audit"]["trained"] + row["audit"]["tested"],
            "found": "refuted" if row["audit"]["refuted"] else "not refuted",
        }
        for row in numbers["rows"]
    ]
    refuted = sum(row["audit"]["refuted"] for row in rows)
    say = Wording("ours", "attacks", first=rows[0], count=len(rows), refuted=refuted, claims=claimed_list(rows))
    return say.words(fails=any(row["verdict"] == "fails" for row in rows), tables=[say.table("table", rows)])

"""Words of the comparison on a synthetic city: curves and claims, maps, losses, and what rounding gives away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.report import count_word
from lessnoise_paper.experiments.demo import CONTROL, map_file
from lessnoise_paper.sections.wording import Wording, claimed_list, raw_table_words, verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings, Words

_PUBLISHED = "r1smg-published"
_NOTABLE = 1.05  # times a loss: less is not worth a sentence


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The demonstration's first paragraphs."""
    numbers = found["demo"]
    assert numbers is not None
    rows, cells = numbers["rows"], math.prod(numbers["shape"])
    say = Wording("demo", "introduce", numbers, cells=cells, count=len(rows), outcome=_outcome(rows))
    return say("lede"), say("mark")


def _outcome(rows: list[Numbers]) -> str:
    """How many keep their claim."""
    kept = _kept(rows)
    failing = len(rows) - len(kept)
    say = Wording("demo", "introduce", failing=failing, do="does" if failing == 1 else "do")
    if not kept:
        return say("none")
    return say(
        "some",
        kept=count_word(len(kept)).capitalize(),
        keep="keeps its" if len(kept) == 1 else "keep their",
        best=kept[0],
        failed=say("failed") if failing else "",
    )


def curves(numbers: Numbers) -> Words:
    """Exact delta against epsilon for every mechanism, what it costs, and every claim."""
    rows = numbers["rows"]
    kept, failing = _kept(rows), [row for row in rows if row["verdict_word"] != "holds"]
    say = Wording(
        "demo",
        "curves",
        numbers,
        kept=len(kept),
        count=len(rows),
        best=kept[0] if kept else rows[0],
        costs=_cost_sentences(rows),
        sentences=" ".join(_claim_sentence(row, numbers) for row in failing),
        said=claimed_list(failing),
    )
    return say.words(fails=bool(failing), tables=[say.table("table", _with_quantiles(rows))])


def maps(numbers: Numbers) -> Words:
    """One release of each mechanism."""
    rows = numbers["rows"]
    failing = len(_kept(rows)) < len(rows)
    plain = Wording("demo", "maps")
    say = Wording(
        "demo",
        "maps",
        numbers,
        cells=math.prod(numbers["shape"]),
        noises=plain.each("noise", rows),
        frame=plain("frame") if failing else "",
    )
    return say.words(fails=failing, pictures=say.pictures("map", rows, map_file))


def spread(numbers: Numbers) -> Words:
    """How much one release varies."""
    rows = _with_quantiles(numbers["rows"])
    kept = len(_kept(rows))
    ranges = Wording("demo", "spread").each("range", rows)
    say = Wording("demo", "spread", ranges=ranges, kept=kept, count=len(rows))
    return say.words(fails=kept < len(rows), tables=[say.table("table", rows)])


def frontier(numbers: Numbers) -> Words:
    """The same promise for fewer entries."""
    points = numbers["frontier"]
    listed = Wording("demo", "frontier").each("point", points)
    cells = math.prod(numbers["shape"])
    return Wording("demo", "frontier", numbers, first=points[0], cells=cells, points=listed).words()


def attack(numbers: Numbers) -> Words:
    """What rounding gives away."""
    rows = {row["key"]: row for row in numbers["rows"]}
    found = numbers["reconstructions"]
    return raw_table_words(found, [rows[one["key"]] for one in found])


def _kept(rows: list[Numbers]) -> list[Numbers]:
    return [row for row in rows if row["verdict_word"] == "holds"]


def _with_quantiles(rows: list[Numbers]) -> list[Numbers]:
    """The quantiles of the loss under names of their own."""
    names = {"0.05": "low", "0.5": "median", "0.95": "high"}
    return [{**row, **{name: row["loss_quantiles"][q] for q, name in names.items()}} for row in rows]


def _claim_sentence(row: Numbers, numbers: Numbers) -> str:
    """A claim that fails, what is true, and how far its source is to blame."""
    verdict, epsilon, claim = verdict_of(row), numbers["target"]["epsilon"], row["mechanism"]["claim"]
    published, (limit, words) = row["key"].startswith(_PUBLISHED), _stated_range(row)
    blamed = verdict.refuted and verdict.claimed.delta > 0.0
    say = Wording("demo", "claim", row, epsilon=epsilon, range=words)
    return say(
        "sentence",
        row=row,
        kind="R1SMG calibration" if published else row["label"],
        source="" if claim is None else f" ({claim['source']})",
        beyond=say("beyond", ratio=verdict.exact.lower / verdict.claimed.delta) if blamed else "",
        at_target=say("at-target") if verdict.claimed.epsilon != epsilon else "",
        fairness=say("fairness") if verdict.claimed.epsilon >= limit else "",
    )


def _stated_range(row: Numbers) -> tuple[float, str]:
    """The epsilon up to which a source states its claim, and how it says so."""
    if row["key"].startswith(_PUBLISHED):
        limit = 1.0 / math.prod(row["mechanism"]["shape"])
        return limit, Wording("demo", "claim", limit=limit)("r1smg-range")
    return (1.0, "epsilon below 1") if row["key"] == "classic-gaussian" else (math.inf, "")


def _cost_sentences(rows: list[Numbers]) -> str:
    """Comparisons that the numbers of this very run support."""
    kept, by_key, say = _kept(rows), {row["key"]: row for row in rows}, Wording("demo", "costs")
    found = []
    exact, control = by_key["r1smg"], by_key[CONTROL]
    gaussian, l2 = (by_key[key]["expected_loss"] / control["expected_loss"] for key in ("analytic-gaussian", "l2"))
    if control in kept and min(gaussian, l2) > _NOTABLE:
        found.append(say("counts", choice=control["mechanism"]["design"]["choice"], gaussian=gaussian, l2=l2))
    if exact in kept and exact["expected_loss"] > control["expected_loss"]:
        found.append(say("r1smg", ratio=exact["expected_loss"] / control["expected_loss"], control=control))
    claimed = by_key.get(f"{_PUBLISHED}-paper", by_key[_PUBLISHED])
    if kept and claimed not in kept and kept[0]["expected_loss"] < claimed["expected_loss"]:
        found.append(say("published", best=kept[0], claimed=claimed))
    return " ".join(found)

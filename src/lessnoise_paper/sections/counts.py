"""Words of case study I: figures 4, 5 and 10, and the comparison at equal exact privacy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise_paper.experiments.counts import map_file
from lessnoise_paper.sections.wording import Wording, claimed_list, listed, raw_table_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Picture, Settings, Words

_PUBLISHED, _GAUSSIAN = "r1smg-published", "analytic-gaussian"
_DROWNED = 1e4
"""Largest counts below this need a word at an epsilon of 1e-5, where independent noise makes them 1e5 and more."""


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study I."""
    numbers = found["counts"]
    assert numbers is not None
    published = _of(numbers["paper_settings"], _PUBLISHED)
    ratio = published["mean_loss"] / _of(numbers["at_the_true_r1smg_guarantee"], _GAUSSIAN)["mean_loss"]
    again = ", on made-up pickups" if numbers["synthetic"] else " and its pickups"
    say = Wording("counts", "introduce", numbers, again=again, published=published, ratio=ratio)
    return say("lede"), say("mark")


def figure_4(numbers: Numbers) -> Words:
    """The maps at the paper's settings."""
    rows = numbers["paper_settings"]
    published = _of(rows, _PUBLISHED)
    failing = [row["label"] for row in rows if row["verdict_word"] != "holds"]
    say = Wording(
        "counts",
        "fig-4",
        numbers,
        where=_pieces(numbers)("made-up" if numbers["synthetic"] else "real"),
        windows_said=_windows(numbers),
        published=published,
        claimed=published["verdict"]["claimed"],
        gaussian=_of(rows, _GAUSSIAN),
        largest=Wording("counts", "fig-4").each("largest", rows, ", "),
        failing=listed(failing),
        do="does" if len(failing) == 1 else "do",
        attack=_of(numbers["reconstruction"], _PUBLISHED),
        gaussian_attack=_of(numbers["reconstruction"], _GAUSSIAN),
    )
    maps, tables = _maps("paper", rows, numbers), _losses_table(rows, numbers)
    return say.words(fails=bool(failing), pictures=maps, tables=tables, facts=say.facts("fact"))


def figure_5(numbers: Numbers) -> Words:
    """How the losses are distributed."""
    rows = numbers["paper_settings"]
    published = _of(rows, _PUBLISHED)
    say = Wording(
        "counts",
        "fig-5",
        numbers,
        losses=published["losses"],
        gaussian=_of(rows, _GAUSSIAN)["losses"],
        where="(of the paper's data, not of this made-up city)" if numbers["synthetic"] else "",
        circle="" if numbers["synthetic"] else ", and the paper's mean (circle)",
        means=Wording("counts", "fig-5").each("mean", rows),
        claims=claimed_list(rows),
    )
    return say.words(fails=True)


def figure_10(numbers: Numbers) -> Words:
    """All mechanisms at R1SMG's epsilon."""
    rows = numbers["all_at_1e-5"]
    others = [row for row in rows if row["key"] != _PUBLISHED]
    small = [row["label"] for row in others if row["key"].startswith("dawa") and row["largest_released"] < _DROWNED]
    say = Wording(
        "counts",
        "fig-10",
        numbers,
        claimed=rows[0]["verdict"]["claimed"],
        largest=Wording("counts", "fig-10").each("largest", others),
        claims=claimed_list(rows),
        flat=Wording("counts", "pieces", names=listed(small))("flat") if small else "",
    )
    return say.words(fails=True, pictures=_maps("strict", others, numbers), tables=_losses_table(rows, numbers))


def equal(numbers: Numbers) -> Words:
    """The comparison at equal exact privacy."""
    rows = numbers["honest"]
    published = _of(numbers["paper_settings"], _PUBLISHED)
    gaussian = _of(numbers["at_the_true_r1smg_guarantee"], _GAUSSIAN)
    least = _of(rows, "least-noise")
    say = Wording(
        "counts",
        "equal-counts",
        numbers,
        best=rows[0],
        least_words="" if rows[0] is least else Wording("counts", "equal-counts", least=least)("least"),
        r1smg=_of(rows, "r1smg"),
        published=published,
        gaussian=gaussian,
        honest_gaussian=_of(rows, _GAUSSIAN),
        ratio=published["mean_loss"] / gaussian["mean_loss"],
        claims=claimed_list(rows),
        cells=math.prod(numbers["shape"]),
        gaussian_length=math.sqrt(_of(rows, _GAUSSIAN)["losses"]["expected_whole"]),
        r1smg_length=math.sqrt(_of(rows, "r1smg")["losses"]["expected_whole"]),
        means=Wording("counts", "equal-counts").each("mean", rows),
    )
    maps, tables = _maps("equal", rows, numbers), _losses_table(rows, numbers)
    return say.words(pictures=maps, tables=tables, facts=say.facts("fact"))


def attack(numbers: Numbers) -> Words:
    """What rounding gives away."""
    found = numbers["reconstruction"]
    rows = [_of(numbers["paper_settings"], one["key"]) for one in found]
    half = numbers["published_r1smg"]["delta_at_0.5"]
    return raw_table_words(found, rows, Wording("counts", "attack", numbers, half=half)("exact"))


def _of(rows: list[Numbers], key: str) -> Numbers:
    return next(row for row in rows if row["key"] == key)


def _pieces(numbers: Numbers) -> Wording:
    return Wording("counts", "pieces", numbers)


def _windows(numbers: Numbers) -> str:
    """Which windows the grids of the losses and of the maps lie over, and why."""
    tried = numbers["windows"]
    if tried is None:
        return _pieces(numbers)("one-window")
    low, high = tried["valid_cells"]
    on_map = numbers["expected_loss_on_the_map"]
    found = {"published_on_map": on_map[_PUBLISHED], "gaussian_on_map": on_map[_GAUSSIAN]}
    return _pieces(numbers)("two-windows", few=low, many=high, **found)


def _maps(part: str, rows: list[Numbers], numbers: Numbers) -> tuple[Picture, ...]:
    return _pieces(numbers).pictures("map", rows, lambda key: map_file(part, key))


def _losses_table(rows: list[Numbers], numbers: Numbers) -> tuple[str]:
    """The losses; the paper's own are about what it says."""
    marked = [{**row, "about": "" if row["paper_mean_valid"] is None else "about "} for row in rows]
    return (_pieces(numbers).table("losses", marked),)

"""Pieces of sentences and tables that several sections use."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.guarantees import Bracket, Guarantee, Verdict
from lessnoise.report.html import html_table, prose
from lessnoise.report.inline import colour
from lessnoise_paper.model import Fact, Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lessnoise_paper.model import Numbers

_LONG = 24  # characters beyond which a cell may break its line
_CHIPS = {"holds": "holds", "fails": "fails", "refuted": "fails"}


def verdict_of(values: Numbers) -> Verdict:
    """The verdict in a row's plain values: under "verdict", or in the row itself."""
    found = values["verdict"] if isinstance(values.get("verdict"), dict) else values
    exact = Bracket.from_dict(found["exact"])
    claimed = Guarantee.from_dict({name: found["claimed"][name] for name in ("epsilon", "delta", "neighbours")})
    return Verdict(exact.upper <= claimed.delta, claimed, exact)


def fact(what: str, values: Numbers) -> Fact:
    """A row of the summary: claimed beside exact."""
    verdict = verdict_of(values)
    return Fact(what, text.pair(verdict.claimed), f"delta {text.exact_delta(verdict)}", verdict.word)


def count_query(shape: Sequence[int]) -> str:
    """What the summary calls R1SMG on the paper's count query."""
    return f"R1SMG, {' x '.join(map(str, shape))} counts (Figure 4)"


def chip(word: str) -> str:
    """A verdict as a coloured word."""
    return f'<span class="verdict {_CHIPS.get(word, "open")}">{escape(word)}</span>'


def rows_table(head: Sequence[str], rows: Iterable[tuple[str, str | None, Sequence[str]]], label: str) -> str:
    """A table of (name, colour, cells); cells are text or verdicts. Columns without any content are left out."""
    lines = []
    rows = list(rows)
    filled = [any(cells[i] for _, _, cells in rows) for i in range(len(head) - 1)]
    head = [head[0], *itertools.compress(head[1:], filled)]
    for name, dot, row in rows:
        cells = itertools.compress(row, filled)
        mark = "" if dot is None else f'<span class="dot" style="background:{colour(dot)}"></span>'
        lines.append(f'<tr><th scope="row">{mark}{prose(name)}</th>' + "".join(map(_cell, cells)) + "</tr>")
    return html_table(tuple(head), lines, label)


def titled(title: str, content: str) -> str:
    """A table under a short title."""
    return f'<p class="over"><strong>{escape(title)}</strong></p>\n{content}'


def _cell(content: str) -> str:
    if content.startswith("<span class="):
        return f"<td>{content}</td>"
    opening = '<td class="wide">' if len(content) > _LONG else "<td>"
    return f"{opening}{prose(content)}</td>"


def listed(words: Sequence[str]) -> str:
    """Some words with commas and an "and".

    >>> listed(["one", "two", "three"])
    'one, two and three'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def percent(share: float, digits: int = 3) -> str:
    """A share in percent.

    >>> percent(0.20004)
    '20%'
    """
    return f"{text.number(100.0 * share, digits)}%"


def claimed_list(rows: Sequence[Numbers]) -> str:
    """What each mechanism claims, and what is true."""
    return "; ".join(f"{row['label']} {text.privacy(verdict_of(row))}" for row in rows) + "."


def raw_table_words(found: Sequence[Numbers], privacy: str) -> Words:
    """How often rounding a release returns the raw table."""
    lines = [
        (
            one["label"],
            None,
            (
                f"{one['exact_tables']:,} of {one['releases']:,} releases",
                percent(one["share"], 2),
                f"{percent(one['interval_99'][0], 2)} to {percent(one['interval_99'][1], 2)}",
                f"{one['exact_occupied_cells']:,}",
            ),
        )
        for one in found
    ]
    head = ("Mechanism", "Exact raw table", "Share", "With 99% confidence", "Every occupied cell right")
    return Words(
        setting="Seeded noise is drawn many times; each release is rounded to whole numbers.",
        paper="",
        ours="; ".join(
            f"{one['label']}: {one['exact_tables']:,} of {one['releases']:,} releases give the exact raw table"
            for one in found
        )
        + ".",
        privacy=f"Claimed and exact delta: {privacy}",
        fails=any(one["exact_tables"] for one in found),
        shows=(
            "Counts are whole numbers, so anyone may round a release. If the noise stays below one half in every cell, "
            "rounding returns the whole raw table, and every pickup in it. An attacker who knows all but one pickup "
            "can see that it happened."
        ),
        tables=(rows_table(head, lines, "Raw tables that rounding returns"),),
    )

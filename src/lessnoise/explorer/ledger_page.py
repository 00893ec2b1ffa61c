"""A page about a ledger, read-only: its history, what is left at several deltas, what a release would cost."""

from __future__ import annotations

import datetime
import io
import math
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from lessnoise.composition import compose
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.explorer.answers import read_request
from lessnoise.explorer.html_page import style
from lessnoise.explorer.server import HTML, LocalServer, Reply
from lessnoise.ledger import draw_spending, history, words_of
from lessnoise.mechanism import CATALOGUE, find_mechanism
from lessnoise.report import document
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lessnoise.ledger import Ledger, Record

_POINTS = 24  # moments of the history that are computed
_LISTED = 100  # newest records that are listed
_MOST_TIMES = 10**6
_FACTORS = (1e-3, 1e-2, 0.1, 1.0, 10.0)  # of the budget's delta
_PURE_DELTAS = (0.0, 1e-9, 1e-6)
_BOXES = {"shape": "100", "sensitivity": "1", "epsilon": "0.1", "delta": "1e-8", "times": "1", "partition": ""}


class LedgerServer(LocalServer):
    """Shows one ledger on this machine alone. It only reads: nothing that is asked of it is spent."""

    def __init__(self, ledger: Ledger, port: int = 0) -> None:
        super().__init__(port)
        self.ledger = ledger

    def find(self, path: str, query: str) -> Reply | None:
        """The page; a planned release is in the query."""
        if path != "/":
            return None

        def made() -> bytes:
            asked = parse_qs(query, keep_blank_values=True, max_num_fields=20)
            return ledger_page(self.ledger, asked).encode()

        return Reply(HTML, made)


def ledger_page(ledger: Ledger, asked: Mapping[str, Sequence[str]] | None = None) -> str:
    """The page as HTML, without a program in it; ``asked`` is what the form says of a planned release."""
    records = ledger.records()
    spent = ledger.spent()
    left = ledger.remaining()
    count = "1 release has" if len(records) == 1 else f"{len(records)} releases have"
    summary = (
        f"So far {count} cost an epsilon of at most {up(spent.upper, 4)} in total, at delta {up(ledger.budget.delta)}. "
        f"At least {down(left, 4)} of the budget's epsilon {up(ledger.budget.epsilon, 4)} is left. "
        f"This is true if {ledger.promise()}."
    )
    plans = "".join(f"<li>{escape(words)}</li>\n" for words in words_of(ledger.plans()))
    body = (
        f'<header>\n<h1>What is left of a budget</h1>\n<p class="lede">{escape(ledger.address)}: {ledger.budget}</p>\n'
        f'</header>\n<main>\n<style>\n{style()}</style>\n<section class="lnx">\n'
        f'<p class="lnx-summary">{escape(summary)}</p>\n{plans and f"<ul>{plans}</ul>"}{_picture(ledger, records)}'
        f"<h2>What is left at several deltas</h2>\n{_deltas(ledger)}<h2>What one more release would cost</h2>\n"
        f"{_planned(ledger, asked or {})}<h2>History</h2>\n{_history(ledger, records)}</section>\n</main>\n"
        "<footer><p>Made by lessnoise. This page only reads the ledger.</p></footer>"
    )
    return document("Ledger", body)


def _picture(ledger: Ledger, records: list[Record]) -> str:
    file = io.BytesIO()
    draw_spending(history(ledger, _POINTS, records), ledger.budget, file, ".svg")
    drawing = file.getvalue().decode()
    return f'<div class="lnx-frame lnx-drawing">{drawing[drawing.index("<svg") :]}</div>\n'


def _deltas(ledger: Ledger) -> str:
    limit = ledger.budget.delta
    deltas = [limit * factor for factor in _FACTORS if limit * factor < 0.5] if limit else list(_PURE_DELTAS)
    rows = []
    for delta in deltas:
        epsilon = ledger.epsilon(delta).upper
        cells = [up(delta), up(epsilon, 4), down(max(ledger.budget.epsilon - epsilon, 0.0), 4)]
        if math.isinf(epsilon):
            cells[1:] = ["no bound", "nothing"]
        rows.append(cells)
    return _table(("delta", "epsilon of all releases: at most", "left of the budget's epsilon: at least"), rows)


def _planned(ledger: Ledger, asked: Mapping[str, Sequence[str]]) -> str:
    """A form, and below it the answer to what was asked by it."""
    given = {name: values[0] for name, values in asked.items() if values}
    chosen = given.get("mechanism", "analytic-gaussian")
    options = "".join(
        f'<option value="{name}"{" selected" if name == chosen else ""}>{escape(name)}</option>' for name in CATALOGUE
    )
    boxes = "".join(
        f'<div class="lnx-field"><label for="lnx-{name}">{name}</label><input type="text" id="lnx-{name}" '
        f'name="{name}" value="{escape(given.get(name, usual), quote=True)}" autocomplete="off"></div>'
        for name, usual in _BOXES.items()
    )
    choice = (
        f'<label for="lnx-mechanism">mechanism</label><select id="lnx-mechanism" name="mechanism">{options}</select>'
    )
    form = (
        f'<form class="lnx-controls" method="get" action="/"><div class="lnx-field">{choice}</div>{boxes}'
        '<button type="submit">Compute</button></form>\n'
    )
    if not asked:
        return form
    try:
        return f'{form}<p class="lnx-summary" id="answer">{escape(_cost(ledger, asked))}</p>\n'
    except LessnoiseError as error:
        return f'{form}<p class="lnx-complaint" id="answer">{escape(str(error))}</p>\n'


def _cost(ledger: Ledger, asked: Mapping[str, Sequence[str]]) -> str:
    """What the planned release would cost, in a sentence."""
    for name, values in asked.items():
        if len(values) != 1 or name not in (*_BOXES, "mechanism"):
            raise InvalidInput(f"{name[:40]!r} is not a field of the form, or is there twice: use the form.")
    times, partition = asked.get("times", ["1"])[0].strip(), asked.get("partition", [""])[0] or None
    if not (times.isdecimal() and len(times) < 8 and 1 <= int(times) <= _MOST_TIMES):
        raise InvalidInput(f"times={times[:40]!r} is not a whole number from 1 to {_MOST_TIMES}: write one such as 30.")
    own = ("times", "partition", "mechanism")
    request = read_request({name: values for name, values in asked.items() if name not in own})
    request = replace(request, neighbours=ledger.budget.neighbours)
    mechanism = find_mechanism(asked.get("mechanism", ["analytic-gaussian"])[0]).build(request)
    planned = compose(mechanism).repeat(int(times))
    before, after = ledger.spent(), ledger.spent_with(planned, partition=partition)
    affords = ledger.affords(planned, partition=partition)
    fits = "The release fits." if affords else "The release does not fit and would be refused."
    return (
        f"The epsilon of all releases would rise from {up(before.upper, 4)} to {up(after.upper, 4)}, at delta "
        f"{up(ledger.budget.delta)}. The budget has {up(ledger.budget.epsilon, 4)}. {fits}"
    )


def _history(ledger: Ledger, records: list[Record]) -> str:
    rows = [
        [
            str(record.id),
            datetime.datetime.fromtimestamp(record.time).strftime("%Y-%m-%d %H:%M:%S"),
            *(record.who, record.mechanisms, record.partition or "everybody", record.note[:200]),
        ]
        for record in reversed(records[-_LISTED:])
    ]
    mark = (
        '<p class="lnx-small">This mark identifies the last record. Keep it somewhere else to notice later changes of '
        f"the ledger: {escape(ledger.mark() or 'no record yet')}</p>\n"
    )
    return _table(("number", "when", "who", "mechanism", "partition", "note"), rows, "lnx-scroll lnx-words") + mark


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], look: str = "lnx-scroll") -> str:
    """Cells are texts from outside, and shown as such; ``look`` aligns words at the left and numbers at the right."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="{look}"><table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{lines}</tbody></table></div>\n'

"""Tables of a page: numbers stand at the right of their columns, words at the left."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from lessnoise_paper.formulas import typeset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONG = 24  # characters beyond which a cell may break its line
_ONE = r"-?\d[\d.,]*(?:e-?\d+)?%?"
_NUMBER = re.compile(rf"(?:(?:about|at least|at most|above|below) )?{_ONE}(?: (?:to|±) {_ONE})?|unknown")


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table that scrolls sideways on narrow screens; the first cell of a row is its name.

    Cells are words, with formulas, or a <span> that is ready.

    >>> html_table("abc", [("x", "0.25", "proved")], "an example").count('class="text"')
    3
    """
    lines = [list(row) for row in rows]
    numeric = [_numeric([line[place] for line in lines]) for place in range(len(head))]
    titles = "".join(_cell("th", name, right, ' scope="col"') for name, right in zip(head, numeric, strict=True))
    body = "\n".join(
        f'<tr><th scope="row">{_content(name)}</th>'
        + "".join(_cell("td", cell, right) for cell, right in zip(cells, numeric[1:], strict=True))
        + "</tr>"
        for name, *cells in lines
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label, quote=True)}">\n'
        f"<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>\n"
    )


def _numeric(cells: list[str]) -> bool:
    """Whether a column holds numbers, or bounds, ranges and errors of them, and nothing else."""
    found = [cell for cell in cells if cell]
    return bool(found) and all(map(_NUMBER.fullmatch, found))


def _cell(kind: str, content: str, numeric: bool, more: str = "") -> str:
    words = " ".join(filter(None, ("" if numeric else "text", "wide" if kind == "td" and _is_long(content) else "")))
    look = f' class="{words}"' if words else ""
    return f"<{kind}{more}{look}>{_content(content)}</{kind}>"


def _is_long(content: str) -> bool:
    return len(content) > _LONG and not content.startswith("<span ")


def _content(content: str) -> str:
    return content if content.startswith("<span ") else typeset(content)

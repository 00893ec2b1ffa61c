"""Words from text files: templates with named places, filled in with numbers.

A file of the folder ``words`` has ``## section`` headings and below them ``### part`` headings. In the text of a part
``{name}`` or ``{name.field.field}`` stands for a value, and what follows a colon says how it is written: digits of a
number (``{loss:3}``), a name of :data:`FORMATS` with digits after it (``{bound:at_most 2}``), or a format of Python's
own (``{count:,}``). A question mark at the end leaves None out. What is empty takes the space before it along.
"""

from __future__ import annotations

import functools
import itertools
import re
from html import escape
from importlib import resources
from string import Formatter
from typing import TYPE_CHECKING, Any

from lessnoise import text
from lessnoise.audit import percent as down_percent
from lessnoise.guarantees import Bracket, Guarantee, Verdict
from lessnoise.report import colour, count_word
from lessnoise_paper.formulas import typeset
from lessnoise_paper.model import Fact, Picture, Words
from lessnoise_paper.tables import html_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lessnoise_paper.model import Numbers

_CHIPS = {"holds": "holds", "fails": "fails", "refuted": "fails"}


def verdict_of(values: Numbers) -> Verdict:
    """The verdict in a row's plain values: under "verdict", or in the row itself."""
    found = values["verdict"] if isinstance(values.get("verdict"), dict) else values
    exact = Bracket.from_dict(found["exact"])
    claimed = Guarantee.from_dict({name: found["claimed"][name] for name in ("epsilon", "delta", "neighbours")})
    return Verdict(exact.upper <= claimed.delta, claimed, exact)


def chip(word: str) -> str:
    """A verdict as a coloured word."""
    return f'<span class="verdict {_CHIPS.get(word, "open")}">{escape(word)}</span>'


def percent(share: float, digits: int = 3) -> str:
    """A share in percent.

    >>> percent(0.20004)
    '20%'
    """
    return f"{text.number(100.0 * share, digits)}%"


def listed(words: Sequence[str]) -> str:
    """Some words with commas and an "and".

    >>> listed(["one", "two", "three"])
    'one, two and three'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


FORMATS: dict[str, Callable[..., str]] = {
    "at_least": text.at_least,
    "at_most": text.at_most,
    "times": text.multiple,
    "percent": percent,
    "percent_at_least": lambda share, digits: f"{text.at_least(100.0 * share, digits)}%",
    "percent_at_most": lambda share, digits: f"{text.at_most(100.0 * share, digits)}%",
    "confidence": down_percent,
    "exact": lambda bracket, digits=4: text.exact(Bracket.from_dict(bracket), digits),
    "pair": lambda target: f"({text.number(target['epsilon'])}, {text.number(target['delta'])})",
    "pair_up": lambda target: f"({text.at_most(target['epsilon'])}, {text.at_most(target['delta'])})",
    "claim": lambda row: text.pair(verdict_of(row).claimed),
    "delta": lambda row: text.exact_delta(verdict_of(row)),
    "privacy": lambda row: text.privacy(verdict_of(row)),
    "judged": lambda row: verdict_of(row).word,
    "verdict": lambda row: chip(verdict_of(row).word),
    "chip": chip,
    "word": count_word,
    "grid": lambda shape: " x ".join(map(str, shape)),
}
"""Ways to write a value; the last ones take a row with its verdict, a word, a small number, a shape."""


class _Filler(Formatter):
    """Python's own templates, with fields of dictionaries and with our formats."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        first, *fields = field_name.split(".")
        return functools.reduce(lambda value, field: value[field], fields, kwargs[first]), first

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401
        spec = format_spec.removesuffix("?")
        if value is None and spec != format_spec:
            return ""
        if not spec:
            return text.number(value) if isinstance(value, float) else str(value)
        name, *digits = spec.split()
        if name in FORMATS:
            return FORMATS[name](value, *map(int, digits))
        return text.number(value, int(name)) if name.isdigit() else format(value, spec)


_FILLER = _Filler()


@functools.cache
def _sections(file: str) -> dict[str, dict[str, str]]:
    """The parts of every section of a file, each as the text below its heading."""
    content = (resources.files(__package__) / "words" / f"{file}.md").read_text(encoding="utf-8")
    return {
        (lines := section.split("\n", 1))[0].strip(): {
            heading.strip(): below.strip()
            for heading, below in (part.split("\n", 1) for part in re.split(r"^### ", lines[1], flags=re.M)[1:])
        }
        for section in re.split(r"^## ", content, flags=re.M)[1:]
    }


class Wording:
    """The words of one section, with the values that they name. A value that no part names is refused.

    >>> say = Wording("counts", "pieces", names="DAWA")
    >>> say("flat")
    'DAWA gives large blocks of cells one count each, and no pattern is left.'
    """

    def __init__(self, file: str, section: str, numbers: Numbers | None = None, /, **values: object) -> None:
        self._parts = _sections(file)[section]
        whole = "".join(itertools.chain.from_iterable(self._parts.items()))
        named = {(name or "").split(".")[0] for _, name, _, _ in _FILLER.parse(whole)}
        if unused := values.keys() - named:
            raise KeyError(f"{file}, {section}: no part names {', '.join(sorted(unused))}")
        self._values = {**(numbers or {}), **values}

    def __call__(self, part: str, /, **more: object) -> str:
        """One part, filled in; "" if there is none of this name."""
        return self._fill(self._parts.get(part, ""), more)

    def _fill(self, template: str, more: Mapping[str, object]) -> str:
        filled = _FILLER.vformat(template, (), {**self._values, **more})
        return re.sub(r"\s+(?=[\s.,;:]|$)", "", filled).replace("\n", " ").strip()

    def each(self, part: str, rows: Sequence[Numbers], between: str = "; ") -> str:
        """One part for every row, whose values go before those of the section; the whole row is ``row``."""
        return between.join(self(part, **{**row, "row": row}) for row in rows)

    def pictures(self, part: str, rows: Sequence[Numbers], file: Callable[[str], str] = str) -> tuple[Picture, ...]:
        """A picture for every row: paragraphs for what it shows, its caption (else the same), a title if it is small.

        It has a red frame where the row's claim does not hold.
        """
        found = []
        for row in rows:
            paragraphs = [self._fill(one, {**row, "row": row}) for one in self._parts[part].split("\n\n")]
            alt, caption, title = paragraphs[0], paragraphs[:2][-1], "".join(paragraphs[2:])
            failing = row.get("verdict_word", "holds") != "holds"
            name = file(row["key"]) if "key" in row else self._fill(part, row)
            found.append(Picture(name, alt, caption, bool(title), title, failing))
        return tuple(found)

    def table(self, part: str, rows: Sequence[Numbers]) -> str:
        """A table: its label, the line of its head, and the line of every row. Empty columns are left out."""
        label, head, line = self._parts[part].split("\n")
        filled = [[self._fill(cell, {**row, "row": row}) for cell in _cells(line)] for row in rows]
        lines = [(name, row.get("colour"), cells) for row, (name, *cells) in zip(rows, filled, strict=True)]
        return rows_table(_cells(head), lines, self._fill(label, {}))

    def facts(self, part: str, rows: Sequence[Numbers] = ({},)) -> tuple[Fact, ...]:
        """Rows of the summary: what, claimed, exact, verdict."""
        return tuple(Fact(*(self._fill(cell, row) for cell in _cells(self._parts[part]))) for row in rows)

    def words(
        self,
        *,
        fails: bool = False,
        pictures: Sequence[Picture] = (),
        tables: Sequence[str] = (),
        facts: Sequence[Fact] = (),
        without: Collection[str] = (),
    ) -> Words:
        """All that the section says. Parts whose name is a file are its pictures, but for those ``without``."""
        own = [self.pictures(name, [{}])[0] for name in self._parts if "." in name and name not in without]
        return Words(
            **{part: self(part) for part in ("setting", "paper", "ours", "privacy", "shows", "headline")},
            pictures=(*own, *pictures),
            tables=tuple(tables),
            facts=tuple(facts),
            fails=fails,
        )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_table(head: Sequence[str], rows: Iterable[tuple[str, str | None, Sequence[str]]], label: str) -> str:
    """A table of (name, colour, cells); cells are text or verdicts. Columns without any content are left out."""
    rows = list(rows)
    filled = [True, *(any(cells[place] for _, _, cells in rows) for place in range(len(head) - 1))]
    lines = [itertools.compress((_named(name, dot), *cells), filled) for name, dot, cells in rows]
    return html_table(list(itertools.compress(head, filled)), map(tuple, lines), label)


def _named(name: str, dot: str | None) -> str:
    """The name of a row, with a dot in the colour that it has in the pictures."""
    return name if dot is None else f'<span class="dot" style="background:{colour(dot)}"></span>{typeset(name)}'


def titled(title: str, content: str) -> str:
    """A table under a short title."""
    return f'<p class="over"><strong>{escape(title)}</strong></p>\n{content}'


def claimed_list(rows: Sequence[Numbers]) -> str:
    """What each mechanism claims, and what is true."""
    return Wording("common", "claims").each("claim", rows) + ("." if rows else "")


def raw_table_words(found: Sequence[Numbers], rows: Sequence[Numbers], exact: str = "") -> Words:
    """How often rounding a release of each of some rows returns the raw table, and a sentence more."""
    each = Wording("common", "raw-table").each("one", found)
    say = Wording("common", "raw-table", each=each, claims=claimed_list(rows), exact=exact)
    lines = [{**one, "low": one["interval_99"][0], "high": one["interval_99"][1]} for one in found]
    return say.words(fails=any(one["exact_tables"] for one in found), tables=[say.table("table", lines)])

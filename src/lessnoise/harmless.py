"""Text from outside, made harmless for terminals and spreadsheets, and short enough for a sentence."""

from __future__ import annotations

import csv
import math
import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_MOST_DIGITS = 1000  # of an integer; Python itself refuses to print more than 4300


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        digits = math.floor(abs(x).bit_length() * math.log10(2.0))
        return f"an integer of about {digits} digits" if digits > _MOST_DIGITS else super().repr_int(x, level)

    def repr_float64(self, x: float, level: int) -> str:
        return float.__repr__(x)


_short = _Short()
_short.maxlevel, _short.maxstring, _short.maxlong, _short.maxother = 3, 60, 40, 60
_short.maxlist = _short.maxtuple = 12
_short.maxdict = 4


def shown(value: object) -> str:
    """What ``repr`` says, in at most about a line, whatever the value is.

    >>> shown([1, "two"]), shown("a" * 1000), shown(10**5000)
    ("[1, 'two']", "'aaaaaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaa'", 'an integer of about 5000 digits')
    """
    text = _short.repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def printable(text: str) -> str:
    r"""The same text with everything that a terminal would obey, or cannot print, written as an escape.

    >>> printable("a\x1b[31mred\ud800 é\n")
    'a\\x1b[31mred\\ud800 é\n'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""A table as CSV: numbers as they are, and no text that a spreadsheet would take for a formula.

    Such text gets an apostrophe in front, which spreadsheets hide (OWASP, "CSV injection").

    >>> csv_text([["name", "=1+1"], [-1.5, "a,b"]])
    'name,\'=1+1\n-1.5,"a,b"\n'
    """
    lines = _Lines()
    csv.writer(lines, lineterminator="\r\n").writerows([_cell(value) for value in row] for row in rows)
    return "".join(lines)


class _Lines(list[str]):
    """Lines that end in a plain newline; the module must be told otherwise, or it would not quote carriage returns."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value

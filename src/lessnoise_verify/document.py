"""Reading a certificate that anyone may have written: nothing is believed of its types, sizes and depth."""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_FILE: Final = 48 * 2**20  # bytes
LARGEST_TABLE: Final = 2 * 10**6  # numbers
LARGEST_DIMENSION: Final = 10**15
_DEEPEST: Final = 40
_ALL = object()


class NotProved(Exception):
    """Why a certificate is not proved; the message is a sentence for people."""


class Refuted(NotProved):
    """What the certificate states is proved to be false, or contradicts itself."""


class Unreadable(NotProved):
    """No certificate of a known form."""


class NotCovered(NotProved):
    """The certificate can be read, but this verifier has no proof for what it states."""


def load(content: bytes) -> Fields:
    """The JSON object in a file; anything else is Unreadable."""
    if len(content) > LARGEST_FILE:
        raise Unreadable(f"the file has {len(content)} bytes, but a certificate may have at most {LARGEST_FILE}.")
    try:
        values = json.loads(content, parse_constant=_no_number, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the file is not JSON as a certificate must be: {_short(error)}.") from None
    return Fields(values, "certificate")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _short(value: object) -> str:
    text = str(value)
    return ascii(text if len(text) <= 60 else text[:60] + "...")[1:-1]


class Fields:
    """The fields of one object; each is read once, as the type that it must have, and :meth:`end` refuses others."""

    def __init__(self, values: object, name: str, depth: int = 0) -> None:
        if not isinstance(values, dict):
            raise Unreadable(f"{name} is {_short(type(values).__name__)}, not an object with fields.")
        if depth > _DEEPEST:
            raise Unreadable(f"{_short(name)} lies too deep: {depth} objects are inside each other.")
        self.values, self.name, self._depth = values, name, depth
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def take(self, name: str, otherwise: Any = _ALL) -> Any:  # noqa: ANN401
        """Whatever the field holds; ``otherwise`` if it is not there."""
        self._read.add(name)
        if name not in self.values:
            if otherwise is _ALL:
                raise Unreadable(f"{self.name} lacks the field {name!r}.")
            return otherwise
        return self.values[name]

    def number(self, name: str, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> Fraction:
        """A finite number from ``low`` to ``high``, exactly."""
        value = self.take(name)
        if type(value) not in (int, float) or not abs(value) < 2**1024 - 2**970:  # beyond all doubles, or NaN
            self._bad(name, value, "a finite number")
        if not low <= value <= high or (open_low and value == low):
            self._bad(name, value, f"{'above' if open_low else 'at least'} {low:g} and at most {high:g}")
        return Fraction(value)

    def positive(self, name: str, high: float = math.inf) -> Fraction:
        """A number above 0."""
        return self.number(name, 0.0, high, open_low=True)

    def whole(self, name: str, low: int = 1, high: int = LARGEST_DIMENSION) -> int:
        """An integer."""
        value = self.take(name)
        if type(value) is not int or not low <= value <= high:
            self._bad(name, value, f"a whole number from {low} to {high}")
        return int(value)

    def text(self, name: str) -> str:
        """A string."""
        value = self.take(name)
        return value if isinstance(value, str) else self._bad(name, value, "text")

    def choice(self, name: str, *known: str) -> str:
        """One of some words."""
        value = self.take(name)
        return value if isinstance(value, str) and value in known else self._bad(name, value, f"one of {known}")

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self.take(name)
        return value if isinstance(value, bool) else self._bad(name, value, "true or false")

    def items(self, name: str, most: int = LARGEST_TABLE) -> list[Any]:
        """A list of anything."""
        value = self.take(name)
        return value if isinstance(value, list) and len(value) <= most else self._bad(name, value, "a list")

    def numbers(self, name: str, most: int = LARGEST_TABLE) -> list[float]:
        """A list of finite numbers: written out, or as base64 of doubles, ``{"float64": "..."}``."""
        return numbers(self.take(name), f"{self.name}.{name}", most)

    def fields(self, name: str) -> Fields:
        """The fields of an object inside."""
        return Fields(self.take(name), f"{self.name}.{name}", self._depth + 1)

    def objects(self, name: str, most: int = 10**4) -> Iterator[Fields]:
        """A list of objects."""
        for place, value in enumerate(self.items(name, most)):
            yield Fields(value, f"{self.name}.{name}[{place}]", self._depth + 1)

    def end(self) -> None:
        """There is no other field: an unknown one could change the meaning of those that are known."""
        others = sorted(set(self.values) - self._read)
        if others:
            raise Unreadable(f"{self.name} has the field {_short(others[0])}, which is not known.")

    def _bad(self, name: str, value: object, wanted: str) -> NoReturn:
        raise Unreadable(f"{self.name}.{name} = {_short(value)} is not {wanted}.")


def numbers(value: object, name: str, most: int = LARGEST_TABLE) -> list[float]:
    """A table of finite doubles, in either form."""
    if isinstance(value, dict) and set(value) == {"float64"} and isinstance(value["float64"], str):
        try:
            content = base64.b64decode(value["float64"], validate=True)
        except (binascii.Error, ValueError):
            raise Unreadable(f"{name} is not base64.") from None
        if len(content) % 8:
            raise Unreadable(f"{name} has {len(content)} bytes, which is not a whole number of doubles.")
        value = list(struct.unpack(f"<{len(content) // 8}d", content))
    if not isinstance(value, list) or len(value) > most:
        raise Unreadable(f"{name} = {_short(value)} is not a list of at most {most} numbers.")
    for each in value:
        if type(each) not in (int, float) or abs(each) > 2**1023 or not math.isfinite(each):
            raise Unreadable(f"{name} has the entry {_short(each)}, which is not a finite number.")
        if type(each) is int and int(float(each)) != each:
            raise Unreadable(f"{name} has the entry {_short(each)}, which is not a double.")
    return [float(each) for each in value]

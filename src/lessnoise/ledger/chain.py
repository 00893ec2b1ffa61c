"""The chain of a ledger's history: each record carries a hash of itself and of the record before it.

The first record builds on the budget. So whoever changes, removes or inserts a record, or edits the budget, must
compute every later hash anew, and the last one is then another than the receipts say that were given out.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lessnoise.guarantees import Guarantee

SPEND, CLOSE, OPEN = "spend", "close", "open"
RESERVE, USE, CANCEL = "reserve", "use", "cancel"  # of a plan, whose name is the note; a use follows its spend
KINDS = (SPEND, CLOSE, OPEN, RESERVE, USE, CANCEL)
DESCRIBED = (SPEND, RESERVE, USE)  # those that describe releases: made, promised, and whose promise is kept


class RecordRow(NamedTuple):
    """One record as stored. ``description`` is a number in the kinds that describe releases, else None."""

    id: int
    kind: str
    time: float
    who: str
    partition: str
    description: int | None
    note: str
    key: str
    hash: bytes


def genesis(budget: Guarantee, adaptive: bool, created: float) -> bytes:
    """What the first record builds on."""
    return _hashed(["lessnoise ledger", budget.epsilon, budget.delta, budget.neighbours.value, adaptive, created])


def linked(previous: bytes, row: RecordRow, description: bytes) -> bytes:
    """The hash of a record, given that of the one before and the SHA-256 of its description (empty if it has none).

    >>> row = RecordRow(1, "spend", 1.8e9, "ada", "", 1, "a note", "", b"")
    >>> linked(b"0", row, b"1") == linked(b"0", row, b"1")
    True
    >>> linked(b"0", row, b"1") == linked(b"0", row._replace(note="another"), b"1")
    False
    """
    number, kind, time, who, partition, _, note, key, _ = row
    return _hashed([previous.hex(), number, kind, time, who, partition, description.hex(), note, key])


def _hashed(values: list[object]) -> bytes:
    """JSON says where each value ends, and writes every double such that it is read back the same."""
    return hashlib.sha256(json.dumps(values).encode()).digest()

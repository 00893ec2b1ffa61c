"""One spend: what the ledger keeps of it, and what the one who spent gets."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise._display import Facts, Listed
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise.composition import Composition

_MARK = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})")


@dataclass(frozen=True)
class Receipt(Listed):
    """Proof that a release was paid for.

    Parameters
    ----------
    id, time : the number of its record, and when it was written (seconds since 1970).
    hash : of the record and, through those before it, of the whole history so far.
    again : the record was there before, under the same key; whoever wrote it may have made the release already.
    """

    id: int
    time: float
    hash: str = ""
    again: bool = False

    @property
    def mark(self) -> str:
        """Number and hash, for :meth:`Ledger.verify <lessnoise.Ledger.verify>`: keep it where the ledger is not."""
        return f"{self.id}:{self.hash}"

    def _facts(self) -> Facts:
        rows = [("record", str(self.id)), ("written", _written(self.time)), ("hash", self.hash)]
        return Facts("Paid before, under the same key" if self.again else "Paid", rows)


@dataclass(frozen=True)
class Record(Listed):
    """One spend: when, on what, for which partition of the individuals (None: all of them), and by whom.

    In a file ``who`` is what the writer's machine says; on a server it is the role that has logged in. ``plan`` is the
    name of the plan that it was promised in, if it was in one.
    """

    id: int
    time: float
    composition: Composition
    partition: str | None
    note: str
    who: str = ""
    key: str = ""
    hash: str = ""
    plan: str | None = None

    @property
    def mechanisms(self) -> str:
        """The names of what was released, with how often and on which samples.

        >>> import lessnoise as ln
        >>> daily = ln.laplace(epsilon=0.1, sensitivity=1, shape=3).subsample(0.5).repeat(30)
        >>> Record(1, 0.0, daily, None, "").mechanisms
        'laplace, sampled at 0.5, 30 times'
        """
        return "; ".join(
            part.mechanism.name
            + ("" if part.rate == 1.0 else f", sampled at {part.rate:g}")
            + ("" if part.count == 1 else f", {part.count} times")
            for part in self.composition.parts
        )

    def _facts(self) -> Facts:
        rows = [
            ("written", _written(self.time)),
            ("releases", f"{self.composition.count:,} of {self.mechanisms}"),
            ("partition", self.partition or "all individuals"),
            *((name, words) for name, words in (("note", self.note), ("by", self.who), ("plan", self.plan)) if words),
        ]
        return Facts(f"Record {self.id} of a ledger", rows)


def read_mark(mark: object) -> tuple[int, bytes]:
    """Number and hash of a mark.

    >>> read_mark("7:" + 64 * "0") == (7, bytes(32))
    True
    """
    found = _MARK.fullmatch(mark) if isinstance(mark, str) else None
    if found is None:
        raise InvalidInput(f"mark={mark!r} is not a mark: pass number:hash as in a receipt, such as 17:9f86d0... .")
    return int(found[1]), bytes.fromhex(found[2])


def _written(time: float) -> str:
    return datetime.datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M")

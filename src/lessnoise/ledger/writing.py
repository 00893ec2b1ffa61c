"""One record, one transaction, once: what was written under a key is not written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lessnoise.errors import InvalidInput
from lessnoise.ledger.arguments import record_key
from lessnoise.ledger.chain import SPEND
from lessnoise.ledger.record import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.ledger.chain import RecordRow
    from lessnoise.ledger.store import Store
    from lessnoise.ledger.tables import Tables

_Decision = TypeVar("_Decision")
_Result = TypeVar("_Result")


def once(
    store: Store,
    key: str | None,
    again: Callable[[Tables, RecordRow], _Result],
    settled: Callable[[Tables], _Decision],
    written: Callable[[Tables, str, _Decision], _Result],
) -> _Result:
    """Decide and write in one transaction, unless there is a record with this key: then what ``again`` says.

    Parameters
    ----------
    store
        Where the ledger is kept.
    key
        A name for the record; None for one of the store's own, by which it is known again if an answer is lost.
    again
        The result, from the record that has the key; an error if it is about something else.
    settled
        The decision, or an error.
    written
        The result, once the decision was written under the key.
    """
    name = store.new_key() if key is None else record_key(key)
    store.check_text("key", name)

    def known(found: Tables) -> _Result | None:
        row = found.of_key(name) if name else None
        return None if row is None else again(found, row)

    def foreseen(found: Tables) -> _Result | None:
        """The same decision without the lock: what it computes is kept."""
        result = None if key is None else known(found)
        if result is None:
            settled(found)
        return result

    def done(found: Tables) -> _Result:
        result = known(found)
        return written(found, name, settled(found)) if result is None else result

    result = store.read(foreseen)
    return store.write(done) if result is None else result


def receipt_of(row: RecordRow, *, again: bool = False) -> Receipt:
    """What the one who wrote a record gets."""
    return Receipt(row.id, row.time, row.hash.hex(), again)


def receipt_again(found: Tables, known: RecordRow, kind: str, json: str) -> Receipt:
    """The receipt of a record that has this key, if it is of this kind and describes the same."""
    if known.kind != kind or known.description is None or found.json_of(known.description) != json:
        raise another(found, known)
    return receipt_of(known, again=True)


def another(found: Tables, known: RecordRow) -> InvalidInput:
    """To raise for a key that belongs to something else."""
    what = "another release" if known.kind == SPEND else f"another {known.kind}"
    return InvalidInput(
        f"key={known.key!r} is that of record {known.id} of {found.ledger}, which is {what}: pass another key."
    )

"""A ledger as one JSON document, and back: from a file to a server, from a server to a file, or as an archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.composition import Composition
from lessnoise.errors import InvalidInput, LedgerError
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.ledger import chain, reservations
from lessnoise.ledger.chain import CLOSE, DESCRIBED, RecordRow
from lessnoise.ledger.descriptions import lookup_in
from lessnoise.ledger.ledger import Ledger
from lessnoise.ledger.opening import store_of
from lessnoise.ledger.tables import digest_of

if TYPE_CHECKING:
    import os

    from lessnoise.ledger.tables import Tables

SCHEMA = 2
_CHUNK = 10_000  # records that are written at once


def export_ledger(ledger: Ledger) -> dict[str, Any]:
    """The budget and every record with its full description and its hash, ready for JSON.

    >>> import tempfile, pathlib, lessnoise as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     city = ln.Ledger.open(pathlib.Path(folder) / "city.ledger", epsilon=1, delta=0)
    ...     receipt = city.spend(ln.laplace(epsilon=0.1, sensitivity=1, shape=1), note="first")
    ...     exported = export_ledger(city)
    >>> exported["records"][0]["note"], exported["records"][0]["hash"] == receipt.hash
    ('first', True)
    """
    ledger.verify()

    def found(tables: Tables) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "budget": tables.budget().to_dict(),
            "adaptive": tables.adaptive(),
            "created": tables.created(),
            "records": [_exported(tables, row) for row in tables.records()],
        }

    return ledger.read(found)


def _exported(tables: Tables, row: RecordRow) -> dict[str, Any]:
    release = None if row.description is None else json.loads(tables.json_of(row.description))  # as it was written
    return {
        "id": row.id,
        "kind": row.kind,
        "time": row.time,
        "who": row.who,
        "partition": row.partition or None,
        "note": row.note,
        "key": row.key,
        "hash": row.hash.hex(),
        "release": release,
    }


def import_ledger(document: dict[str, Any], path: str | os.PathLike[str], *, copy: bool = False) -> Ledger:
    """Create a ledger with the history of an exported one; every hash is checked, and nothing is created if one fails.

    Two ledgers of one budget would allow it to be spent twice. So the exported one must have been closed before
    (:meth:`Ledger.close <lessnoise.Ledger.close>`), unless ``copy`` says that it is gone or will not be used.
    """
    try:
        budget, adaptive, created, releases = _read(document)
    except (InvalidInput, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:150].rstrip(".")
        raise InvalidInput(f"records are not those of an exported ledger ({reason}): export it again.") from None
    rows = [row for row, _ in releases]
    closed = bool(rows) and rows[-1].kind == CLOSE
    if not closed and not copy:
        raise InvalidInput(
            "the exported ledger was not closed, and two ledgers of one budget could spend it twice: close it with "
            "lessnoise ledger export --close, or pass --copy if it will never be used again."
        )
    store = store_of(path)

    def fill(tables: Tables) -> None:
        previous, described_rows = tables.genesis(), []
        for row, described in releases:
            expected = chain.linked(previous, row, b"" if described is None else digest_of(described))
            if expected != row.hash:
                raise InvalidInput(f"record {row.id} is not as it was written: export the ledger again.")
            for name in ("partition", "note", "key", "who"):
                store.check_text(name, getattr(row, name))
            number = None if described is None else tables.description_id(described)
            described_rows.append(row._replace(description=number))
            previous = row.hash
        for start in range(0, len(described_rows), _CHUNK):
            tables.insert_records(described_rows[start : start + _CHUNK])
        if closed:
            tables.add(None, kind=chain.OPEN, note="imported")
        tables.check_contents()
        reservations.reservations(tables, lookup_in(tables, budget.neighbours))  # which refuses plans that are none

    if store.exists():
        raise InvalidInput(f"ledger={store.address} exists already: choose another name.")
    store.check_creatable()
    if not store.create(budget, adaptive, created, fill):
        raise LedgerError(f"ledger={store.address} was created by another meanwhile: choose another name.")
    ledger = Ledger.open(path)
    ledger.verify()
    return ledger


def _read(document: dict[str, Any]) -> tuple[Guarantee, bool, float, list[tuple[RecordRow, str | None]]]:
    """The parts of an exported ledger, checked."""
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema={document['schema']!r}")
    stated = document["budget"]
    budget = Guarantee(
        validation.epsilon(stated["epsilon"]),
        validation.delta_or_zero(stated["delta"]),
        Neighbours.of(stated["neighbours"]),
    )
    if not isinstance(document["adaptive"], bool):
        raise TypeError("adaptive")
    created = document["created"]
    if not isinstance(created, float):
        raise TypeError("created")
    releases: list[tuple[RecordRow, str | None]] = []
    for number, record in enumerate(document["records"], start=1):
        release = record["release"]
        described = None if release is None else json.dumps(release)  # to the letter what was recorded, or no hash fits
        if described is not None:
            Composition.from_json(described)
        texts = [record["kind"], record["who"], record["partition"] or "", record["note"], record["key"]]
        sound = record["id"] == number and isinstance(record["time"], float) and texts[0] in chain.KINDS
        readable = all(isinstance(text, str) and validation.is_unicode(text) for text in texts)
        if not (sound and readable) or (release is None) == (texts[0] in DESCRIBED):
            raise ValueError(f"record {number}")
        kind, who, partition, note, key = texts
        digest = bytes.fromhex(record["hash"])
        releases.append((RecordRow(number, kind, record["time"], who, partition, None, note, key, digest), described))
    return budget, document["adaptive"], created, releases

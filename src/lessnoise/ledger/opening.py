"""From an address to what keeps the ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.ledger.address import scheme_of
from lessnoise.ledger.database import FileStore
from lessnoise.ledger.server import ServerStore

if TYPE_CHECKING:
    from lessnoise.ledger.store import Store


def store_of(path: str | os.PathLike[str]) -> Store:
    """Where a ledger is kept, by its address: nothing is opened."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise InvalidInput(f"path={path!r} is not a path: pass the name of the ledger's file.")
    if not isinstance(path, str) or scheme_of(path) is None:
        return FileStore(Path(path))
    return ServerStore(path)


def migrate_ledgers(path: str | os.PathLike[str]) -> None:
    """Bring the tables of a server to this version; those of a file are brought to it when it is opened."""
    store_of(path).migrate()


def create_in(store: Store, stated: dict[str, Any]) -> bool:
    """Create a ledger with a budget that was stated; False if there is one already."""
    store.check_creatable()
    relation = Neighbours.of(stated.get("neighbours", Neighbours.ADD_REMOVE))
    return store.create(Guarantee(stated["epsilon"], stated["delta"], relation), stated.get("adaptive", False))

"""The address of a ledger on a server: what connects, and what may be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, unquote

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from types import ModuleType

SCHEMES = ("postgresql", "postgres")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LONGEST_NAME = 200
_WANTED = "pass postgresql://host/database?ledger=NAME"


@dataclass(frozen=True)
class ServerAddress:
    """Which ledger on which server. Only ``shown`` may be printed: the other address can hold a password."""

    ledger: str
    shown: str
    user: str | None
    connect: str = field(repr=False)


def scheme_of(address: str) -> str | None:
    """The kind of server; None for the name of a file.

    >>> scheme_of("postgresql://db/city?ledger=a"), scheme_of("city.ledger"), scheme_of("/tmp/a://b")
    ('postgresql', None, None)
    """
    found = _SCHEME.match(address)
    return None if found is None else found[1].lower()


def is_on_server(address: str) -> bool:
    """Whether this is the address of a server, and not the name of a file."""
    return scheme_of(address) is not None


def driver() -> ModuleType:
    """The library that talks to the server."""
    module: ModuleType = validation.require("psycopg", "postgres")
    return module


def parse_address(address: str) -> ServerAddress:
    """Take an address apart; InvalidInput, which quotes no part that could be a password, if it is none.

    >>> parse_address("postgresql://ada:secret@db.org:5433/city?sslmode=require&ledger=north%20side").shown
    'postgresql://ada@db.org:5433/city?ledger=north%20side'
    """
    scheme = scheme_of(address)
    if scheme not in SCHEMES:
        raise InvalidInput(
            f"ledger={scheme}://... is of no kind that is known: pass the name of a file, or "
            "postgresql://host/database?ledger=NAME."
        )
    place, _, query = address.partition("?")
    parameters = [part for part in query.split("&") if part]
    names = [unquote(part.removeprefix("ledger=")) for part in parameters if part.startswith("ledger=")]
    rest = "&".join(part for part in parameters if not part.startswith("ledger="))
    if len(names) != 1 or not names[0] or len(names[0]) > _LONGEST_NAME or not names[0].isprintable():
        _refuse(scheme, f"names {'no ledger' if not names else 'the ledger wrongly'}: {_WANTED}, once and with a name")
    connect = f"postgresql{place[len(scheme) :]}" + (f"?{rest}" if rest else "")
    psycopg = driver()
    try:
        found = psycopg.conninfo.conninfo_to_dict(connect)
    except (psycopg.Error, UnicodeError):  # it would quote the address
        _refuse(scheme, f"cannot be understood: {_WANTED}, with other letters than a-z written as %20 and so on")
    user = found.get("user")
    port = f":{found['port']}" if "port" in found else ""
    login = f"{quote(str(user))}@" if user else ""
    host = quote(str(found.get("host", "")), safe=",:[]")
    shown = f"postgresql://{login}{host}{port}/{quote(str(found.get('dbname', '')))}?ledger={quote(names[0])}"
    return ServerAddress(names[0], shown, None if user is None else str(user), connect)


def _refuse(scheme: str | None, why: str) -> NoReturn:
    raise InvalidInput(f"ledger={scheme}://... {why}.")

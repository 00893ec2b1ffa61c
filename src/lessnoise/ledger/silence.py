"""A connection that does not wait for ever: a server that says nothing for too long counts as lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from lessnoise.ledger.address import driver

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import PQGen

_T = TypeVar("_T")
SILENCE = 40.0  # seconds without a byte; locks are waited for 5 s at most, and one look at a million records takes less


def limit_silence(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """From now on, whoever waits for this connection gets an OperationalError once the server is silent for too long.

    A server can be silent for ever: it is halted, its disk hangs, a commit waits for a standby that is down, or the
    network drops what is sent. psycopg asks the generators of a connection every tenth of a second to go on.
    """
    wait = connection.wait

    def patiently(generator: PQGen[_T], *arguments: Any, **options: Any) -> _T:  # noqa: ANN401
        found: _T = wait(_heard(generator), *arguments, **options)
        return found

    connection.wait = patiently  # type: ignore[method-assign, assignment]


def _heard(generator: PQGen[_T]) -> PQGen[_T]:
    """The same steps; an error if nothing was ready for too long."""
    until = time.monotonic() + SILENCE
    try:
        wanted = next(generator)
        while True:
            ready = yield wanted
            if ready:
                until = time.monotonic() + SILENCE
            elif time.monotonic() > until:
                raise driver().OperationalError(f"the server has said nothing for {SILENCE:g} s")
            wanted = generator.send(ready)
    except StopIteration as end:
        value: _T = end.value
        return value

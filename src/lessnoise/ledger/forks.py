"""A fork waits until no other thread has a ledger's file open.

SQLite remembers in the process which locks it holds, and a child would inherit the memory but not the locks: it would
read and write as if nobody else did. So the files are closed, and stay closed, while the process forks.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from lessnoise.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator


_PATIENCE = 180.0  # seconds; longer than anybody waits for a ledger that is busy


class _Doors:
    """How many files each thread has open, and how many threads wait to fork."""

    def __init__(self, *, broken: bool = False) -> None:
        self.changed = threading.Condition()
        self.inside: dict[int, int] = {}
        self.forking = 0
        self.broken = broken  # one was open all the same: that of a thread whose signal handler forked, as it may be

    def others(self) -> bool:
        return any(thread != threading.get_ident() for thread in self.inside)


_doors = _Doors()


@contextlib.contextmanager
def held_off(ledger: str) -> Iterator[None]:
    """Within this, no other thread forks."""
    doors, thread = _doors, threading.get_ident()
    if doors.broken:
        raise LedgerError(
            f"{ledger} cannot be used in a process that was forked while a release was being paid for: fork before, or "
            "start a new process (multiprocessing calls it spawn)."
        )
    with doors.changed:
        while doors.forking and thread not in doors.inside:
            doors.changed.wait()
        doors.inside[thread] = doors.inside.get(thread, 0) + 1
    try:
        yield
    finally:
        if doors is _doors:  # else this is a child, in which nothing is open
            with doors.changed:
                doors.inside[thread] -= 1
                if not doors.inside[thread]:
                    del doors.inside[thread]
                doors.changed.notify_all()


def _before() -> None:
    _doors.changed.acquire()
    _doors.forking += 1
    _doors.changed.wait_for(lambda: not _doors.others(), timeout=_PATIENCE)


def _in_parent() -> None:
    _doors.forking -= 1
    _doors.changed.notify_all()
    _doors.changed.release()


def _in_child() -> None:
    global _doors
    _doors = _Doors(broken=bool(_doors.inside) or _doors.broken)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)

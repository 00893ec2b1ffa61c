"""What a ledger needs of whatever keeps it: a file or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger.tables import Tables

_T = TypeVar("_T")


class Store(Protocol):
    """Where a ledger is kept. Each action is one transaction, and may be run again from its beginning."""

    address: str  # fit to be shown: it has no password
    path: Path | None  # of a file

    def exists(self) -> bool:
        """Whether there is a ledger of that name; LedgerError if what is there cannot be one."""

    def check_creatable(self) -> None:
        """InvalidInput if it cannot be created there."""

    def create(
        self,
        budget: Guarantee,
        adaptive: bool,
        created: float | None = None,
        fill: Callable[[Tables], object] | None = None,
    ) -> bool:
        """Create it whole or not at all, with what ``fill`` writes; whether it was this call that did."""

    def check(self) -> tuple[Guarantee, bool]:
        """Refuse what is not a whole ledger; its budget, and whether noise may be chosen by earlier answers."""

    def migrate(self) -> None:
        """Bring the tables of an earlier version to this one."""

    def read(self, action: Callable[[Tables], _T]) -> _T:
        """What an action finds in a consistent view."""

    def write(self, action: Callable[[Tables], _T]) -> _T:
        """What an action returns, once all that it wrote counts."""

    def new_key(self) -> str:
        """By which a record is known again when its answer was lost; empty if no answer can be lost."""

    def check_text(self, name: str, value: str) -> None:
        """InvalidInput for a text that cannot be stored."""

    def is_of(self, path: Path) -> bool:
        """Whether this path is one of the ledger's own files."""

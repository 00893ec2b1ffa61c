"""What fails after a release was paid for says so: that it was paid, by which record, and what is left to do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lessnoise.errors import InvalidInput, PaidNotReleased

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from lessnoise.composition import Composition
    from lessnoise.files import Staged
    from lessnoise.ledger import Ledger, Receipt
    from lessnoise.mechanism import Mechanism
    from lessnoise.release.release import Release
    from lessnoise.table import TableAnswer

_LOST = "the noisy value is lost, and to make it again costs again"
IN_MEMORY = "the noisy value is in this error's .release: write it elsewhere, for to make it again costs again"


@dataclass
class Payment:
    """A context for all that follows a payment: an error in it becomes :class:`PaidNotReleased`.

    An interrupt stays what it is, and gets a note with the same sentence. Without a ledger nothing is changed.
    """

    ledger: Ledger | None
    receipt: Receipt | None = None
    release: Release | TableAnswer | None = None
    kept: Callable[[], str] | None = None  # what is left, in words, once files are complete
    _paying: bool = False

    def spend(self, release: Mechanism | Composition, partition: str | None = None) -> None:
        """Pay; to be called in the context."""
        if self.ledger is not None:
            self._paying = True
            self.receipt = self.ledger.spend(release, partition=partition)

    def keep(self, staged: Staged) -> None:
        """All files are complete: if they were paid for and cannot get their names, they stay and are named."""
        if self.receipt is not None:
            staged.keep = True
            self.kept = lambda: f"its files are complete: move {', '.join(map(str, staged.where()))} to their places"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or self.ledger is None or isinstance(error, PaidNotReleased):
            return
        file = f"ledger={self.ledger.address}"
        if self.receipt is None:
            if self._paying and not isinstance(error, Exception):
                error.add_note(f"interrupted while paying: whether it was paid, the last record of {file} tells.")
            return
        kept = None if self.kept is None else self.kept()
        failure = f"paid (record {self.receipt.id} of {file}), but then it failed: {reason(error)}"
        if isinstance(error, Exception):
            advice = kept or (_LOST if self.release is None else IN_MEMORY)
            raise PaidNotReleased(failure, advice, receipt=self.receipt, release=self.release) from error
        error.add_note(f"{failure}; {kept or _LOST}.")


def check_payment(
    rng: np.random.Generator | None, ledger: Ledger | None, partition: str | None, what: str = "release"
) -> None:
    """Refuse what cannot be paid for, before anything is computed; ``what`` is the word for what is paid.

    >>> check_payment(None, None, "north")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    InvalidInput: partition='north' is of no use without a ledger: pass ledger= too, or leave it out.
    """
    if ledger is not None and not hasattr(ledger, "spend"):
        raise InvalidInput(f"ledger={ledger!r} is not a ledger: pass Ledger.open(path).")
    if ledger is None and partition is not None:
        raise InvalidInput(f"partition={partition!r} is of no use without a ledger: pass ledger= too, or leave it out.")
    if ledger is not None and rng is not None:
        raise InvalidInput(
            f"rng= and ledger= do not go together: a {what} from a seeded generator is not private, so leave one out."
        )


def reason(error: BaseException) -> str:
    """Why something failed, as part of a sentence."""
    if isinstance(error, MemoryError):
        return "memory ran out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"
    if not isinstance(error, Exception):
        return "interrupted"
    return (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")

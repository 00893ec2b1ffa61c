"""What can go wrong, in the words of the caller."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lessnoise.harmless import printable

if TYPE_CHECKING:
    from lessnoise.ledger import Receipt
    from lessnoise.release import Release
    from lessnoise.table import TableAnswer


class LessnoiseError(Exception):
    """Base of every error that lessnoise raises on purpose; its text is safe to print, whatever it quotes."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class InvalidInput(LessnoiseError, ValueError):
    """An argument is unusable; nothing was drawn, spent or written."""


class LedgerError(LessnoiseError):
    """A ledger cannot be read or written; nothing was drawn or released."""


class SpendUnknown(LedgerError):
    """The disk failed while a spend was written, which may count or not; nothing was drawn or released."""


class BudgetExceeded(LessnoiseError):
    """A release would exceed the ledger's budget; nothing was drawn, spent or written.

    Both numbers are epsilons at the ledger's delta, on the safe side: ``remaining`` is what the budget has left over
    the exact total so far, ``requested`` is what the release would add to that total.
    """

    def __init__(self, message: str, *, remaining: float, requested: float) -> None:
        super().__init__(message)
        self.remaining = remaining
        self.requested = requested

    def __reduce__(self) -> tuple[object, ...]:
        return _budget_exceeded, (str(self), self.remaining, self.requested)


def _budget_exceeded(message: str, remaining: float, requested: float) -> BudgetExceeded:
    return BudgetExceeded(message, remaining=remaining, requested=requested)


class PaidNotReleased(LessnoiseError):
    """A release was paid for from a ledger, and a later step failed: the message says why, and what there is.

    ``receipt`` is the record of the payment. ``release`` is the release (of a table, its answer), if the noise was
    drawn: nothing is lost then, as it can still be written, and to make it again would cost again. ``failure`` is the
    message without the advice.
    """

    def __init__(
        self, failure: str, advice: str, *, receipt: Receipt, release: Release | TableAnswer | None = None
    ) -> None:
        super().__init__(f"{failure}; {advice}.")
        self.failure, self.advice, self.receipt, self.release = failure, advice, receipt, release

    def __reduce__(self) -> tuple[object, ...]:
        made = functools.partial(PaidNotReleased, receipt=self.receipt, release=self.release)
        return made, (self.failure, self.advice)


class ClaimWarning(UserWarning):
    """A published calibration is used outside its stated range, or its claim does not hold."""


class MissingExtra(LessnoiseError, ImportError):
    """An optional part of lessnoise is asked for and not installed; the message names the extra to install."""


class EngineFailed(LessnoiseError, RuntimeError):
    """A data engine died before the answer was complete; nothing was drawn, spent or written."""

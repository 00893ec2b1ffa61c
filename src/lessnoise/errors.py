"""What can go wrong, in the words of the caller."""

from __future__ import annotations

from lessnoise.harmless import printable


class LessnoiseError(Exception):
    """Base of every error that lessnoise raises on purpose; its text is safe to print, whatever it quotes."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class InvalidInput(LessnoiseError, ValueError):
    """An argument is unusable; nothing was drawn, spent or written."""


class LedgerError(LessnoiseError):
    """A ledger cannot be read or written; nothing was drawn or released."""


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


class ClaimWarning(UserWarning):
    """A published calibration is used outside its stated range, or its claim does not hold."""


class MissingExtra(LessnoiseError, ImportError):
    """An optional part of lessnoise is asked for and not installed; the message names the extra to install."""


class EngineFailed(LessnoiseError, RuntimeError):
    """A data engine died before the answer was complete; nothing was drawn, spent or written."""

"""What can go wrong, in the words of the caller."""

from __future__ import annotations


class LessnoiseError(Exception):
    """Base of every error that lessnoise raises on purpose."""


class InvalidInput(LessnoiseError, ValueError):
    """An argument is unusable; nothing was drawn, spent or written."""


class ClaimWarning(UserWarning):
    """A published calibration is used outside its stated range, or its claim does not hold."""


class MissingExtra(LessnoiseError, ImportError):
    """An optional part of lessnoise is asked for and not installed; the message names the extra to install."""


class EngineFailed(LessnoiseError, RuntimeError):
    """A data engine died before the answer was complete; nothing was drawn, spent or written."""

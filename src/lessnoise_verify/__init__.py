"""Proofs of privacy certificates by ball arithmetic, from the certificate alone and with no code of lessnoise."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lessnoise_verify.document import NotCovered, NotProved, Refuted, Unreadable

if TYPE_CHECKING:
    from lessnoise_verify.verdict import Verdict, enclosed_delta, verify

__all__ = ["NotCovered", "NotProved", "Refuted", "Unreadable", "Verdict", "enclosed_delta", "verify"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Arb is loaded when a proof begins, and not before."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("lessnoise_verify.verdict"), name)

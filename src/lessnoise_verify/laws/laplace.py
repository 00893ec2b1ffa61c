"""Laplace noise on each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_verify.document import NotCovered

if TYPE_CHECKING:
    from fractions import Fraction

    from flint import arb

    from lessnoise_verify.changes import Moves


def laplace_moves_delta(moves: list[Moves], scale: Fraction, epsilon: Fraction, bits: int) -> arb:
    """The largest delta over several changes, for independent Laplace noise of this scale on each entry."""
    raise NotCovered("Laplace noise against several changes is not covered yet.")

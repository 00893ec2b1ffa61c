"""Noise on the integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_verify.document import NotCovered

if TYPE_CHECKING:
    from fractions import Fraction

    from flint import arb

    from lessnoise_verify.changes import Moves


def geometric_moves_delta(moves: list[Moves], rate: Fraction, tail: Fraction, epsilon: Fraction, bits: int) -> arb:
    """The largest delta over several changes, for independent geometric noise on each entry."""
    raise NotCovered("geometric noise against several changes is not covered yet.")

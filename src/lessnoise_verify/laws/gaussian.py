"""Normal noise: delta in closed form (Balle & Wang 2018, Theorem 8), for the largest change over the deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flint import arb

from lessnoise_verify.balls import ball, normal_tail, refined

if TYPE_CHECKING:
    from fractions import Fraction


def gaussian_delta(square: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), of mu^2."""
    if square == 0:
        return arb(0)

    def closed_form() -> arb:
        mu, eps = ball(square).sqrt(), ball(epsilon)
        return normal_tail(eps / mu - mu / 2) - eps.exp() * normal_tail(eps / mu + mu / 2)

    return refined(closed_form, bits)

"""What a ledger promises when the noise of a release is chosen by earlier answers, and what it refuses then.

Two things may depend on earlier answers. *What is asked* may always: the composition of a fixed list of mechanisms
holds against every such choice (Dwork, Rothblum and Vadhan, "Boosting and differential privacy", FOCS 2010; for exact
curves Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022). *Which noise is added*, and whether
there is a further release at all, is another matter: then the ledger acts as a privacy filter (Rogers, Roth, Ullman and
Vadhan, "Privacy odometers and filters", NeurIPS 2016), and "the exact curve of what was run keeps the budget" is proved
to be one for two families only:

- pure releases, whose epsilons are added (the same paper, on basic composition), for a budget with delta = 0;
- Gaussian noise, by the sum of mu^2 (Smith and Thakurta, "Fully adaptive composition for Gaussian differential
  privacy", 2022; Koskela, Tobaben and Honkela, "Individual privacy accounting with Gaussian differential privacy",
  ICLR 2023), for a budget with delta > 0. The curves of Gaussians are ordered by mu, so a budget
  (epsilon, delta) is one of mu^2.

For other laws, for mixtures and for Poisson samples, the exact curve is proved for a list that is fixed beforehand.
Filters by Renyi divergences (Feldman and Zrnic, NeurIPS 2021; Lecuyer, 2021) cover them with more noise than the exact
curve asks for; they are not used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Guarantee

FIXED = (
    "the mechanisms, their noise and their number were fixed before the first answer; questions may depend on answers"
)
_PURE = (
    "all releases are pure (delta = 0), and then mechanisms may be chosen by earlier answers, because the epsilons of "
    "pure releases add up (Rogers, Roth, Ullman and Vadhan, 2016)"
)
_GAUSSIAN = (
    "all noise is Gaussian, and then mechanisms may be chosen by earlier answers, by the sum of mu^2 (Smith and "
    "Thakurta, 2022)"
)


def promise(budget: Guarantee, adaptive: bool) -> str:
    """Under which condition the total of a ledger holds, and by which theorem.

    >>> from lessnoise import Guarantee
    >>> promise(Guarantee(1, 0), adaptive=True)[:33]
    'all releases are pure (delta = 0)'
    """
    if not adaptive:
        return FIXED
    return _PURE if budget.delta == 0.0 else _GAUSSIAN


def refuse_unproved(asked: Composition, budget: Guarantee, ledger: str) -> None:
    """InvalidInput for a release of which nothing is proved if its noise is chosen by earlier answers.

    A pure budget needs no look: what is not pure exceeds it, and what is pure adds up.
    """
    if budget.delta == 0.0 or all(step.mu is not None for step in asked.steps):
        return
    names = ", ".join(dict.fromkeys(part.mechanism.name for part in asked.parts))
    raise InvalidInput(
        f"mechanism={names!r} is not plain Gaussian noise, and for no other does theory allow a choice by earlier "
        f"answers at delta={budget.delta:g}: use analytic-gaussian, or pay from a ledger that is not adaptive, "
        f"which {ledger} is."
    )

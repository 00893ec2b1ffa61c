"""The attacks: each gives every output a score, high where it looks like a release of the value.

=============  ===================================================================================================
likelihood     the privacy loss itself; for lessnoise's own descriptions, whose densities are known; the best there is
nearest        ln of (distance to the neighbour / distance to the value): which of the two is nearer, and how much
ball           a small ball about either: 1/distance to the nearer one, with its sign
rounding       whole numbers only: does rounding return the value's table, or the neighbour's, and how clearly?
projection     position along the line from the neighbour to the value
=============  ===================================================================================================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.audit.laws import log_density_ratio
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lessnoise._common import Array
    from lessnoise.audit.outputs import Outputs
    from lessnoise.mechanism import Law

    Score = Callable[[Outputs], Array]


@dataclass(frozen=True, slots=True)
class Attack:
    """A named score. ``unfit`` says, in a few words, why it cannot be used on this target; None if it can.

    ``log_odds`` says that the score is the logarithm of the odds of the value against the neighbour. No other attack
    is better then, by Neyman and Pearson's lemma.
    """

    name: str
    score: Score
    unfit: str | None = None
    log_odds: bool = False


def likelihood(law: Law, outputs: Outputs) -> Array:
    """The privacy loss, to nine decimals: the last bits of doubles tell inputs apart, which is another matter.

    (A Laplace mechanism has its largest loss on a whole half-line. There only rounding errors differ, and they differ
    between releases of the value and of the neighbour, as Mironov showed in 2012.)
    """
    return np.round(log_density_ratio(law, outputs), 9)


def nearest(outputs: Outputs) -> Array:
    """How many times nearer the output is to the value than to the neighbour, as a logarithm."""
    with np.errstate(divide="ignore"):
        return np.log(outputs.other_distance) - np.log(outputs.distance)


def ball(outputs: Outputs) -> Array:
    """Closeness to the nearer of the two: thresholds are a ball about the value and one about the neighbour.

    Noise that is often very small, such as a half-normal radius, puts its output into a ball of half the distance
    about the truth far too often; from the other input that ball is almost never reached.
    """
    with np.errstate(divide="ignore"):
        inverse = 1.0 / np.minimum(outputs.distance, outputs.other_distance)
    return np.where(outputs.distance <= outputs.other_distance, inverse, -inverse)


def rounding(outputs: Outputs) -> Array:
    """Reconstruction of whole numbers: 1 - (largest distance to a whole number), signed by whose table comes back.

    All noise of one release of a rank-1 mechanism has one common radius. When that is small, every entry is close
    to its whole number, anyone sees it, and rounding returns the whole table.
    """
    score = np.zeros(len(outputs.array))
    reach = 0.5 * outputs.shift.size**0.5 * (1.0 + 1e-9)  # farther away some entry is off by more than 1/2
    near = np.flatnonzero(np.minimum(outputs.distance, outputs.other_distance) <= reach)
    flat = outputs.array.reshape(len(score), -1)[near]
    whole = np.rint(flat)
    clear = 1.0 - np.abs(flat - whole).max(axis=1)
    ours, theirs = ((whole == given.ravel()).all(axis=1) for given in (outputs.value, outputs.neighbour))
    score[near] = np.where(ours, clear, np.where(theirs, -clear, 0.0))
    return score


def projection(outputs: Outputs) -> Array:
    """Position along the line from the neighbour to the value."""
    return -outputs.along


BUILT_IN: dict[str, Score] = {"nearest": nearest, "ball": ball, "rounding": rounding, "projection": projection}
NAMES = ("likelihood", *BUILT_IN)


def resolve(
    chosen: str | Callable[..., Any] | Iterable[str | Callable[..., Any]],
    law: Law | None,
    value: Array,
    neighbour: Array,
    output_shape: tuple[int, ...],
) -> tuple[list[Attack], list[Attack]]:
    """The attacks to run and those that do not fit. ``"all"`` passes over the latter; a named one must fit."""
    wanted: Sequence[Any] = [chosen] if isinstance(chosen, str) or callable(chosen) else list(chosen)
    if not wanted:
        raise InvalidInput(f'attacks=() is empty: pass "all" or some of {", ".join(NAMES)}, or a function.')
    found: dict[str, Attack] = {}
    for one in wanted:
        if not callable(one):
            validation.choice("attacks", one, ("all", *NAMES))
        names = NAMES if one == "all" else (one,)
        for name in names:
            attack = custom(one) if callable(one) else _built_in(name, law, value, neighbour, output_shape)
            if attack.name in found:
                raise InvalidInput(f"attacks has {attack.name!r} twice: give each attack once, under its own name.")
            if attack.unfit and one != "all":
                raise InvalidInput(
                    f"attacks={attack.name!r} cannot be used here, because {attack.unfit}: leave it out."
                )
            found[attack.name] = attack
    fit = [attack for attack in found.values() if not attack.unfit]
    unfit = [attack for attack in found.values() if attack.unfit]
    if not fit:
        raise InvalidInput(
            f"output.shape={output_shape} differs from value.shape={value.shape}, so no built-in attack fits: "
            "pass a function of the outputs as an attack."
        )
    return fit, unfit


def _built_in(name: str, law: Law | None, value: Array, neighbour: Array, output_shape: tuple[int, ...]) -> Attack:
    unfit = None
    if output_shape != value.shape:
        unfit = f"output.shape={output_shape} differs from value.shape={value.shape}"
    elif name == "likelihood":
        if law is None:
            return Attack(name, projection, "the densities of a function's outputs are not known")
        if log_density_ratio.dispatch(type(law)) is log_density_ratio.dispatch(object):
            unfit = f"the densities of {type(law).__name__} are not known"
        return Attack(name, _definite(functools.partial(likelihood, law)), unfit, log_odds=True)
    elif name == "rounding" and not (
        np.array_equal(value, np.rint(value)) and np.array_equal(neighbour, np.rint(neighbour))
    ):
        unfit = "the value and the neighbour are not whole numbers"
    return Attack(name, _definite(BUILT_IN.get(name, projection)), unfit)


def _definite(score: Score) -> Score:
    """Outputs so far away that a score is infinity less infinity say nothing: 0."""

    def definite(outputs: Outputs) -> Array:
        with np.errstate(all="ignore"):
            found = score(outputs)
        return np.where(np.isnan(found), 0.0, found)

    return definite


def custom(function: Callable[..., Any]) -> Attack:
    """A caller's score: from outputs of shape (releases, ...) to one number a release. Both arrays are copies."""
    name = str(getattr(function, "__name__", type(function).__name__))

    def score(outputs: Outputs) -> Array:
        found = function(outputs.array.copy())
        try:
            result = np.array(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"attack {name!r} returned {type(found).__name__}, not numbers: return one number for each row."
            ) from None
        if result.shape != (len(outputs.array),):
            raise InvalidInput(
                f"attack {name!r} returned scores of shape={result.shape} for {len(outputs.array)} outputs: "
                "return one number for each row."
            )
        if np.isnan(result).any():
            raise InvalidInput(f"attack {name!r} returned a score=nan: return a number for every output.")
        return result

    return Attack(name, score)

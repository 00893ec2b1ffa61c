"""What is audited: a description of lessnoise, or anyone's function from a value to an output."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.audit.laws import ROUNDING, covered_distance, distance, release_many, worst_shift
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee
from lessnoise.mechanism import Mechanism, integer_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from lessnoise._common import Array
    from lessnoise.mechanism import Law


class Calls(Enum):
    """How releases are asked for."""

    ONE = "one release a call"
    MANY = "many a call, known to be independent"
    MANY_VOUCHED = "many a call, said to be independent"


@dataclass(frozen=True, slots=True)
class Target:
    """A name and a way to make many releases: (value, how many, generator) to an array with one release a row.

    ``parallel`` says that several threads may call it at once.
    """

    name: str
    release: Callable[[Array, int, np.random.Generator], Array]
    law: Law | None
    parallel: bool
    calls: Calls


def worst_neighbour(mechanism: Mechanism, value: ArrayLike) -> Array:
    """The neighbour of a value that is hardest to hide, as far as is known: it is moved by the whole sensitivity.

    >>> import lessnoise as ln
    >>> worst_neighbour(ln.laplace(epsilon=1, sensitivity=2, shape=3), [5, 5, 5])
    array([7., 5., 5.])
    """
    checked = validation.array(value, mechanism.shape)
    return checked + _worst_change(mechanism)


def _worst_change(mechanism: Mechanism) -> Array:
    known = worst_shift(mechanism.law, mechanism.shape, mechanism.shift)
    changes, size = mechanism.changes, mechanism.dimension
    if changes is None:
        return known
    largest = changes.majorant(size)
    tried = [known] if largest is None else [known, worst_shift(mechanism.law, mechanism.shape, largest)]
    alternating = np.where(np.arange(size) % 2, -1.0, 1.0).reshape(mechanism.shape)  # who is replaced leaves and enters
    for change in [*tried, *(change * alternating for change in tried)]:
        if changes.contains(change.ravel().tolist()):
            return change
    raise InvalidInput(f"neighbour=None, and the worst of changes={changes} is not known: pass a neighbour.")


def inputs(mechanism: object, value: ArrayLike, neighbour: ArrayLike | None) -> tuple[Array, Array]:
    """The two inputs, checked; for a description, that they are neighbours at all."""
    if not isinstance(mechanism, Mechanism):
        first = validation.real_array(value, "value")
        if neighbour is None:
            raise InvalidInput("neighbour=None, but which inputs are neighbours is known to you only: pass one.")
        second = validation.real_array(neighbour, "neighbour")
        if second.shape != first.shape:
            raise InvalidInput(
                f"neighbour.shape={second.shape} differs from value.shape={first.shape}: pass two values of one shape."
            )
    else:
        first = validation.array(value, mechanism.shape)
        second = (
            worst_neighbour(mechanism, first)
            if neighbour is None
            else validation.array(neighbour, mechanism.shape, "neighbour")
        )
        if mechanism.law.integer:
            integer_array(first, mechanism.shape)
            integer_array(second, mechanism.shape)
        if mechanism.changes is not None:
            if not mechanism.changes.contains((second - first).ravel().tolist()):
                raise InvalidInput(
                    f"neighbour differs from value by a change that is not in changes={mechanism.changes}: pass two "
                    "inputs that the claim covers."
                )
            return first.copy(), _different(first, second).copy()
        apart = distance(mechanism.law, second - first)
        if apart > covered_distance(mechanism.law, mechanism.sensitivity) * (1.0 + ROUNDING):
            raise InvalidInput(
                f"neighbour lies {apart:g} from value in the {mechanism.law.norm} norm, beyond the mechanism's "
                f"sensitivity={mechanism.sensitivity:g}: pass two inputs that the claim covers."
            )
    return first.copy(), _different(first, second).copy()  # the caller's own may change while the audit runs


def _different(first: Array, second: Array) -> Array:
    if np.array_equal(first, second):
        raise InvalidInput("neighbour equals value: pass two different inputs, as far apart as neighbours can be.")
    return second


def guarantee(mechanism: object, claim: Guarantee | tuple[float, float] | None) -> Guarantee:
    """The claim to test: the one given, as a guarantee or a pair, or the description's own."""
    if isinstance(claim, Guarantee):
        return claim
    if claim is not None:
        if not isinstance(claim, (tuple, list)) or len(claim) != 2:
            raise InvalidInput(f"claim={claim!r} is not a claim: pass (epsilon, delta) or a Guarantee.")
        return Guarantee(claim[0], claim[1])
    if isinstance(mechanism, Mechanism) and mechanism.claim is not None:
        return mechanism.claim
    raise InvalidInput("claim=None, and nothing else says what is claimed: pass claim=(epsilon, delta).")


def target_of(mechanism: object) -> Target:
    """A description or a function, ready to be released many times."""
    if isinstance(mechanism, Mechanism):
        release = functools.partial(release_many, mechanism.law)
        return Target(mechanism.name, release, mechanism.law, parallel=True, calls=Calls.MANY)
    if not callable(mechanism):
        raise InvalidInput(f"mechanism={mechanism!r} is neither a Mechanism nor a function: pass one of them.")
    return _from_function(mechanism)


def _from_function(function: Callable[..., Any]) -> Target:
    name = str(getattr(function, "__name__", type(function).__name__))
    known = _parameters(function)

    def release(value: Array, count: int, rng: np.random.Generator) -> Array:
        options: dict[str, Any] = {"rng": rng} if "rng" in known else {}
        if "size" in known:
            result = _numbers(name, function(value.copy()[()], size=count, **options))
            if result.ndim == 0 or len(result) != count:
                raise InvalidInput(
                    f"{name}(value, size={count}) returned an array of shape={result.shape}: return one output in "
                    "each row."
                )
            return result
        # Each call has a copy of its own; [()] makes a number of an array without axes.
        return np.stack([_numbers(name, function(value.copy()[()], **options)) for _ in range(count)])

    # Without our generator it draws from its own, which may not be made for several threads.
    calls = Calls.MANY_VOUCHED if "size" in known else Calls.ONE
    return Target(name, release, None, parallel="rng" in known, calls=calls)


def _parameters(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # written in C
        return set()


def _numbers(name: str, output: object) -> Array:
    """A copy, since a function may give out one array of its own over and over."""
    try:
        given = np.asarray(output)
        if given.dtype.kind == "c":
            raise TypeError(given.dtype)
        result = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} returned {type(output).__name__}, not numbers: wrap it to return numbers."
        ) from None
    if not np.isfinite(result).all():
        raise InvalidInput(f"{name} returned nan or infinity: wrap it to return finite numbers, such as clipped ones.")
    return result

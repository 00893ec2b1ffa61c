"""Every check of user input, in one place.

Each message is one sentence: the offending ``name=value``, then what to do about it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MAX_DIMENSION = 10**12
SMALLEST_EPSILON = 1e-300
SMALLEST_DELTA = 1e-200
_FORM = "pass rows of equal length, or a NumPy array."


def number(name: str, value: object) -> float:
    """A finite real number; ints, NumPy scalars and bool-free reals are welcome."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidInput(f"{name}={value!r} is not a number: pass an int or a float.")
    try:
        result = float(value)
    except OverflowError:
        size = f"an integer of about {int(math.log10(2.0) * int(value.__trunc__()).bit_length())} digits"
        raise InvalidInput(f"{name}={size} is too large: pass an ordinary number.") from None
    if not math.isfinite(result):
        raise InvalidInput(f"{name}={result} is not finite: pass an ordinary number.")
    return result


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    result = number(name, value)
    if result <= 0.0:
        raise InvalidInput(f"{name}={value} must be above 0: pass a positive number.")
    return result


def epsilon(value: object, name: str = "epsilon") -> float:
    """A privacy loss bound for calibration: finite and above zero."""
    result = positive(name, value)
    if result < SMALLEST_EPSILON:
        raise InvalidInput(f"{name}={value} is below {SMALLEST_EPSILON}: pass a larger one.")
    return result


def nonnegative_epsilon(value: object, name: str = "epsilon") -> float:
    """A point of a privacy curve: finite and at least zero."""
    result = number(name, value)
    if result < 0.0:
        raise InvalidInput(f"{name}={value} must not be below 0: pass 0 or a positive number.")
    return result


def delta(value: object, name: str = "delta") -> float:
    """A failure probability for calibration, strictly between 0 and 1."""
    result = number(name, value)
    if not 0.0 < result < 1.0:
        raise InvalidInput(f"{name}={value} must lie strictly between 0 and 1: pass a small probability, such as 1e-6.")
    if result < SMALLEST_DELTA:
        raise InvalidInput(f"{name}={value} is below {SMALLEST_DELTA}: pass a larger one, or use pure privacy.")
    return result


def delta_or_zero(value: object, name: str = "delta") -> float:
    """A failure probability of a guarantee: 0 (pure differential privacy) up to, not including, 1."""
    result = number(name, value)
    if not 0.0 <= result < 1.0:
        raise InvalidInput(f"{name}={value} must be at least 0 and below 1: pass a small probability.")
    return result


def probability(name: str, value: object, example: str = "0.5 for the median, say") -> float:
    """A number strictly between 0 and 1."""
    result = number(name, value)
    if not 0.0 < result < 1.0:
        raise InvalidInput(f"{name}={value} must lie strictly between 0 and 1: pass {example}.")
    return result


def sensitivity(value: object, name: str = "sensitivity") -> float:
    """How far one individual can move the value: finite and above zero."""
    result = number(name, value)
    if result <= 0.0:
        raise InvalidInput(f"{name}={value} must be above 0: pass the largest change that one individual can cause.")
    return result


def shape(value: object, name: str = "shape") -> tuple[int, ...]:
    """An array shape, given as one int or a sequence of ints, each at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        sizes: tuple[object, ...] = (value,)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        sizes = tuple(value)
    else:
        raise InvalidInput(f"{name}={value!r} is not a shape: pass an int such as 7921 or a tuple such as (89, 89).")
    if any(isinstance(size, bool) or not isinstance(size, Integral) or int(size) < 1 for size in sizes):
        raise InvalidInput(f"{name}={value!r} must hold whole numbers of at least 1: pass a shape such as (89, 89).")
    result = tuple(int(size) for size in sizes if isinstance(size, Integral))
    if math.prod(result) > MAX_DIMENSION:
        raise InvalidInput(f"{name}={value!r} has more than {MAX_DIMENSION} entries: split the value first.")
    return result


def whole_number(name: str, value: object, minimum: int = 1) -> int:
    """An integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{name}={value!r} is not a whole number: pass an int of at least {minimum}.")
    if int(value) < minimum:
        raise InvalidInput(f"{name}={value} must be at least {minimum}: pass a larger whole number.")
    return int(value)


def choice(name: str, value: object, allowed: Sequence[object]) -> None:
    """One of a short list of allowed values."""
    if value not in allowed or isinstance(value, bool):  # True == 1
        raise unknown(name, value, allowed)


def unknown(name: str, value: object, allowed: Iterable[object]) -> InvalidInput:
    """The error for a value that is not on a list, with the nearest one that is.

    >>> print(unknown("mechanism", "lapalce", ["l2", "laplace"]))
    mechanism='lapalce' is not known: perhaps 'laplace' is meant, else choose one of 'l2', 'laplace'.
    """
    import difflib

    known = {str(option): option for option in allowed}
    near = difflib.get_close_matches(str(value), known, 1)
    perhaps = f"perhaps {known[near[0]]!r} is meant, else " if near else ""
    options = ", ".join(repr(option) for option in known.values())
    return InvalidInput(f"{name}={value!r} is not known: {perhaps}choose one of {options}.")


def generator(rng: object) -> np.random.Generator | None:
    """None (cryptographic randomness) or a NumPy generator (experiments)."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    raise InvalidInput(
        f"rng={rng!r} is not a NumPy generator: leave it out for a private release, "
        "or pass numpy.random.default_rng(seed) for an experiment."
    )


def real_array(
    value: ArrayLike,
    name: str = "value",
    *,
    kinds: str = "iuf",
    form: str = _FORM,
    repair: str = "clean or clip the value before release.",
) -> NDArray[np.float64]:
    """A finite real array of any shape, as float64; ``kinds`` are the NumPy kinds of dtype that will do."""
    result = _as_array(value, name, form)
    if result.dtype.kind not in kinds:
        raise InvalidInput(f"{name}.dtype={result.dtype} is not numeric: {_conversion(value, result.dtype.kind)}")
    converted = result.astype(np.float64, copy=False)
    finite = np.isfinite(converted)
    if not finite.all():
        position = tuple(int(i) for i in np.argwhere(~finite)[0])
        where = list(position) if position else ""
        raise InvalidInput(f"{name}{where}={converted[position]} is not finite: {repair}")
    return converted


def _as_array(value: ArrayLike, name: str, form: str = _FORM) -> NDArray[Any]:
    """As NumPy has it; entries that a mask hides are not released with the others."""
    unmasked(value, name)
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise InvalidInput(f"{name} is not a rectangular array: {form}") from None


def unmasked(value: object, name: str) -> None:
    """A masked array must hide nothing: NumPy would quietly use the numbers below the mask.

    >>> unmasked(np.ma.array([1.0, 2.0], mask=[False, True]), "value")
    Traceback (most recent call last):
    ...
    lessnoise.errors.InvalidInput: value has 1 masked entries: fill them with a public number first, value.filled(0).
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        hidden = int(np.ma.getmaskarray(value).sum())
        raise InvalidInput(
            f"{name} has {hidden} masked entries: fill them with a public number first, {name}.filled(0)."
        )


def _conversion(value: object, kind: str) -> str:
    """What to do about a value of another kind."""
    if hasattr(value, "toarray"):
        return "a sparse matrix becomes an array by .toarray()."
    remedies = {
        "b": "count with .astype(int) first.",
        "c": "release the real and the imaginary part, each with its share of the budget.",
        "U": "convert the text to numbers first.",
    }
    return remedies.get(kind, "convert it to float64 first.")


def json_object(text: object, name: str) -> dict[str, Any]:
    """The fields of a description that was stored as JSON."""
    try:
        found = json.loads(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{name}={_short(text)} is not a JSON object: pass what to_json returned.")
    return found


def fields(values: object, needed: Iterable[str], name: str) -> dict[str, Any]:
    """A stored description with all its fields."""
    if not isinstance(values, dict):
        raise InvalidInput(f"{name}={_short(values)} is not a dict: pass what to_dict returned.")
    missing = [field for field in needed if field not in values]
    if missing:
        raise InvalidInput(f"{name} lacks {', '.join(map(repr, missing))}: pass all that to_dict returned.")
    return values


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def shaped_array(value: ArrayLike, expected: tuple[int, ...], name: str = "value") -> NDArray[Any]:
    """A real array of exactly the expected shape: float32 as it is, all else as float64. NaN is looked for later."""
    result = _as_array(value, name)
    if result.dtype.kind not in "iuf" or result.shape != expected:
        array(value, expected, name)
    return result if result.dtype == np.float32 else result.astype(np.float64, copy=False)


def array(value: ArrayLike, expected: tuple[int, ...], name: str = "value") -> NDArray[np.float64]:
    """A finite real array of exactly the expected shape, as float64."""
    converted = real_array(value, name)
    if converted.shape != expected:
        raise InvalidInput(
            f"{name}.shape={converted.shape} differs from the mechanism's shape={expected}: "
            "build the mechanism for this shape or reshape the value."
        )
    return converted

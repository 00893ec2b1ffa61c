"""Every check of user input, in one place.

Each message is one sentence: the offending ``name=value``, then what to do about it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput, MissingExtra
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lessnoise._common import Array, BoolArray

MAX_DIMENSION = 10**12
MAX_AXES = 32  # of a NumPy array, in every version
SMALLEST_EPSILON = 1e-300
SMALLEST_DELTA = 1e-200
WHOLE = 2**53
"""Every whole number up to this one is a float64, and not every one beyond."""
_FORM = "pass rows of equal length, or a NumPy array."


def require(module: str, extra: str) -> Any:  # noqa: ANN401
    """Import an optional module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise MissingExtra(f"{package} is not installed: run pip install 'lessnoise[{extra}]'.") from None


def number(name: str, value: object, towards: float | None = None) -> float:
    """A finite real number as a float; one between two floats goes to the nearest, or ``towards`` the safe side.

    >>> from fractions import Fraction
    >>> [Fraction(number("x", Fraction(1, 3), side)) > Fraction(1, 3) for side in (-math.inf, math.inf)]
    [False, True]
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidInput(f"{name}={shown(value)} is not a number: pass an int or a float.")
    exact: Any = int(value) if isinstance(value, Integral) else value  # NumPy would compare its own as floats
    try:
        result = float(exact)
    except OverflowError:
        raise InvalidInput(f"{name}={shown(value)} is too large: pass an ordinary number.") from None
    if not math.isfinite(result):
        raise InvalidInput(f"{name}={result} is not finite: pass an ordinary number.")
    if towards is not None and (result > exact if towards < 0.0 else result < exact):
        return math.nextafter(result, towards)
    return result


def positive(name: str, value: object, towards: float | None = None, example: str = "a positive number") -> float:
    """A finite number above zero. Subnormal ones have few digits, and everything computed from them fewer."""
    result = number(name, value, towards)
    if result <= 0.0:
        raise InvalidInput(f"{name}={shown(value)} must be above 0: pass {example}.")
    if result < sys.float_info.min:
        raise InvalidInput(f"{name}={result} is too small to compute with: state everything in other units.")
    return result


def epsilon(value: object, name: str = "epsilon") -> float:
    """A privacy loss bound for calibration: finite and above zero; never rounded up."""
    result = positive(name, value, -math.inf)
    if result < SMALLEST_EPSILON:
        raise InvalidInput(f"{name}={shown(value)} is below {SMALLEST_EPSILON}: pass a larger one.")
    return result


def nonnegative_epsilon(value: object, name: str = "epsilon") -> float:
    """A point of a privacy curve: finite and at least zero; never rounded up."""
    result = number(name, value, -math.inf)
    if result < 0.0:
        raise InvalidInput(f"{name}={shown(value)} must not be below 0: pass 0 or a positive number.")
    return result


def delta(value: object, name: str = "delta") -> float:
    """A failure probability for calibration, strictly between 0 and 1; never rounded up."""
    result = probability(name, value, "a small probability, such as 1e-6", -math.inf)
    if result < SMALLEST_DELTA:
        raise InvalidInput(f"{name}={shown(value)} is below {SMALLEST_DELTA}: pass a larger one, or use pure privacy.")
    return result


def delta_or_zero(value: object, name: str = "delta") -> float:
    """A failure probability of a guarantee: 0 (pure differential privacy) up to, not including, 1; never rounded up."""
    result = number(name, value, -math.inf)
    if not 0.0 <= result < 1.0:
        raise InvalidInput(f"{name}={shown(value)} must be at least 0 and below 1: pass a small probability.")
    return result


def probability(
    name: str, value: object, example: str = "0.5 for the median, say", towards: float | None = None
) -> float:
    """A number strictly between 0 and 1."""
    result = number(name, value, towards)
    if not 0.0 < result < 1.0:
        raise InvalidInput(f"{name}={shown(value)} must lie strictly between 0 and 1: pass {example}.")
    return result


def sensitivity(value: object, name: str = "sensitivity") -> float:
    """How far one individual can move the value: finite and above zero; never rounded down."""
    return positive(name, value, math.inf, "the largest change that one individual can cause")


def shape(value: object, name: str = "shape") -> tuple[int, ...]:
    """An array shape, given as one int or a sequence of ints, each at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        sizes: tuple[object, ...] = (value,)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        sizes = tuple(value)
    else:
        raise InvalidInput(
            f"{name}={shown(value)} is not a shape: pass an int such as 7921 or a tuple such as (89, 89)."
        )
    if len(sizes) > MAX_AXES:
        raise InvalidInput(f"{name} has {len(sizes)} axes: pass at most {MAX_AXES}, reshaping the value first.")
    if any(isinstance(size, bool) or not isinstance(size, Integral) or int(size) < 1 for size in sizes):
        raise InvalidInput(
            f"{name}={shown(value)} must hold whole numbers of at least 1: pass a shape such as (89, 89)."
        )
    result = tuple(int(size) for size in sizes if isinstance(size, Integral))
    if math.prod(result) > MAX_DIMENSION:
        raise InvalidInput(f"{name}={shown(value)} has more than {MAX_DIMENSION} entries: split the value first.")
    return result


def whole_number(name: str, value: object, minimum: int = 1) -> int:
    """An integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{name}={shown(value)} is not a whole number: pass an int of at least {minimum}.")
    if int(value) < minimum:
        raise InvalidInput(f"{name}={shown(value)} must be at least {minimum}: pass a larger whole number.")
    return int(value)


def choice(name: str, value: object, allowed: Sequence[object]) -> None:
    """One of a short list of allowed values, by type too: True is not 1."""
    if not any(type(value) is type(option) and value == option for option in allowed):
        raise unknown(name, value, allowed)


def unknown(name: str, value: object, allowed: Iterable[object]) -> InvalidInput:
    """The error for a value that is not on a list, with the nearest one that is.

    >>> print(unknown("mechanism", "lapalce", ["l2", "laplace"]))
    mechanism='lapalce' is not known: perhaps 'laplace' is meant, else choose one of 'l2', 'laplace'.
    """
    import difflib

    known = {str(option): option for option in allowed}
    near = difflib.get_close_matches(value[:60], known, 1) if isinstance(value, str) else []
    perhaps = f"perhaps {known[near[0]]!r} is meant, else " if near else ""
    options = ", ".join(repr(option) for option in known.values())
    return InvalidInput(f"{name}={shown(value)} is not known: {perhaps}choose one of {options}.")


def generator(rng: object) -> np.random.Generator | None:
    """None (cryptographic randomness) or a NumPy generator (experiments)."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    raise InvalidInput(
        f"rng={shown(rng)} is not a NumPy generator: leave it out for a private release, "
        "or pass numpy.random.default_rng(seed) for an experiment."
    )


def real_array(
    value: ArrayLike,
    name: str = "value",
    *,
    kinds: str = "iuf",
    form: str = _FORM,
    repair: str = "clean or clip the value before release.",
) -> Array:
    """A finite real array of any shape, as float64; ``kinds`` are the NumPy kinds of dtype that will do."""
    converted = floats(numeric_array(value, name, kinds, form), name)
    finite = np.isfinite(converted)
    if not finite.all():
        raise InvalidInput(f"{_first(name, converted, ~finite)} is not finite: {repair}")
    return converted


def numeric_array(value: ArrayLike, name: str = "value", kinds: str = "iuf", form: str = _FORM) -> NDArray[Any]:
    """An array of numbers in the type that they came in."""
    result = _as_array(value, name, form)
    if result.dtype.kind not in kinds:
        raise InvalidInput(f"{name}.dtype={result.dtype} is not numeric: {_conversion(value, result.dtype.kind)}")
    return result


def floats(values: NDArray[Any], name: str = "value") -> Array:
    """The same numbers as float64, or none: rounded ones of neighbours could lie further apart than they do.

    >>> floats(np.array([2**53 + 1]))
    Traceback (most recent call last):
    ...
    lessnoise.errors.InvalidInput: value[0]=9007199254740993 is beyond 2^53, where float64 skips whole numbers: ...
    """
    if values.dtype.kind in "iuO" and values.size and not -WHOLE <= int(values.min()) <= int(values.max()) <= WHOLE:
        beyond = (values > WHOLE) | (values < -WHOLE)
        raise InvalidInput(
            f"{_first(name, values, beyond)} is beyond 2^53, where float64 skips whole numbers: subtract a "
            "public number first, divide by one, or use integer noise (discrete_gaussian)."
        )
    with np.errstate(over="ignore"):
        converted = values.astype(np.float64, copy=False)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        wrong = (converted != values) & ~np.isnan(values)
        if wrong.any():
            raise InvalidInput(
                f"{_first(name, values, wrong)} lies between two numbers of float64: convert the value to "
                "float64 before its sensitivity is computed."
            )
    return converted


def _first(name: str, values: NDArray[Any], wrong: BoolArray) -> str:
    """The first entry that is wrong, as ``name[place]=value``."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{name}{list(place) if place else ''}={values[place]}"


def _as_array(value: ArrayLike, name: str, form: str = _FORM) -> NDArray[Any]:
    """As NumPy has it, if nothing is rounded to a common type; entries that a mask hides are not released."""
    unmasked(value, name)
    try:
        result = np.asarray(value)
    except Exception:  # each library has errors of its own
        raise InvalidInput(f"{name} is not a rectangular array of numbers: {form}") from None
    if result.dtype.kind == "f":
        for place, part in enumerate(_parts(value)):
            if not isinstance(part, float):
                own = f"{name}[{place}]"
                floats(np.array(part, dtype=object) if isinstance(part, int) else _as_array(part, own), own)
    return result


def _parts(value: Any) -> Iterable[Any]:  # noqa: ANN401
    """What may be of several types: the entries of a list, the columns of a table. An array has one type."""
    if hasattr(value, "iloc") and hasattr(value, "columns"):  # pandas, which allows a name twice
        return [value.iloc[:, place] for place in range(len(value.columns))]
    if hasattr(value, "columns"):  # Polars has their names there, Arrow themselves
        return [value[column] if isinstance(column, str) else column for column in value.columns]
    return () if hasattr(value, "__array__") or not hasattr(value, "__len__") else value


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


def text(name: str, value: object) -> str:
    """A str that every file and terminal can hold: no half of a surrogate pair."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={shown(value)} is not text: pass a str.")
    if not is_unicode(value):
        raise InvalidInput(f"{name}={shown(value)} is not valid Unicode: pass text without lone surrogates.")
    return value


def is_unicode(text: str) -> bool:
    """Whether a str can be stored at all: one with half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def entries(name: str, value: object) -> tuple[Any, ...]:
    """A list or tuple, at least one entry long."""
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidInput(f"{name}={shown(value)} is not a list with entries: pass one with at least one entry.")
    return tuple(value)


def numbers(name: str, values: object) -> tuple[float, ...]:
    """Finite numbers, in a list, a tuple or a vector."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise InvalidInput(f"{name}={shown(values)} is not a sequence: pass a list of numbers.")
    if all(type(value) is float and math.isfinite(value) for value in values):
        return tuple(values)
    return tuple(number(f"{name}[{place}]", value) for place, value in enumerate(values))


def json_object(text: object, name: str) -> dict[str, Any]:
    """The fields of a description that was stored as JSON."""
    try:
        found = json.loads(text, object_pairs_hook=_once)  # type: ignore[arg-type]
    except InvalidInput:
        raise
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{name}={shown(text)} is not a JSON object: pass what to_json returned.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise InvalidInput(f"field {shown(twice)} is there twice in one JSON object: keep the one that is meant.")
    return found


def fields(
    values: object,
    needed: Iterable[str],
    name: str,
    optional: Iterable[str] | None = (),
    schema: int | None = None,
    *,
    written_by: str = "to_dict",
) -> dict[str, Any]:
    """A stored description with all its fields and no others; what they hold is checked by what is built from them.

    ``optional=None`` lets any other field be there too. ``written_by`` is a function, or "hand": then the fields are
    named if one is wrong.

    >>> fields({"lower": 0.0, "uper": 1.0}, ("lower", "upper"), "bracket")
    Traceback (most recent call last):
    ...
    lessnoise.errors.InvalidInput: bracket lacks 'upper': pass all that to_dict returned.
    """
    if not isinstance(values, dict):
        pass_what = "a table of its fields" if written_by == "hand" else f"what {written_by} returned"
        raise InvalidInput(f"{name}={shown(values)} is not a dict: pass {pass_what}.")
    names = list(needed)
    known = {*names, *(values if optional is None else optional), *(() if schema is None else ("schema",))}
    whole, only = f"all that {written_by} returned", f"only what {written_by} returned"
    if written_by == "hand":
        whole, only = f"all of {', '.join(names)}", f"only {', '.join(sorted(known))}"
    if schema is not None and (type(values.get("schema")) is not int or values["schema"] != schema):
        raise InvalidInput(
            f"schema={shown(values.get('schema'))} is not {schema}: this {name} was written by another version of "
            "lessnoise; read it with that version."
        )
    missing = [field for field in names if field not in values]
    if missing:
        raise InvalidInput(f"{name} lacks {', '.join(map(repr, missing))}: pass {whole}.")
    extra = set(values) - known
    if extra:
        some = ", ".join(shown(field) for field in sorted(extra, key=str)[:3])
        raise InvalidInput(f"{name} has {some}, which it does not know: pass {only}.")
    return values


def members(kind: type, values: object, name: str | None = None) -> dict[str, Any]:
    """The fields of a dataclass from its stored description."""
    return fields(values, [field.name for field in dataclasses.fields(kind)], name or kind.__name__.lower())


def shaped_array(value: ArrayLike, expected: tuple[int, ...], name: str = "value") -> NDArray[Any]:
    """A real array of exactly the expected shape: float32 as it is, all else as float64. NaN is looked for later."""
    result = fitting(numeric_array(value, name), expected, name)
    return result if result.dtype == np.float32 else floats(result, name)


def array(value: ArrayLike, expected: tuple[int, ...], name: str = "value") -> Array:
    """A finite real array of exactly the expected shape, as float64."""
    return fitting(real_array(value, name), expected, name)


def fitting(values: NDArray[Any], expected: tuple[int, ...], name: str = "value") -> NDArray[Any]:
    """An array of exactly the expected shape."""
    if tuple(values.shape) != expected:
        raise InvalidInput(
            f"{name}.shape={tuple(values.shape)} differs from the mechanism's shape={expected}: "
            "build the mechanism for this shape or reshape the value."
        )
    return values

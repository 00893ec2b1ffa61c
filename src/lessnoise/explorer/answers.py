"""What the library answers the explorer: certified brackets and losses of every mechanism, and curves as points."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, Any

from lessnoise.changes import ball, corner, counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import CATALOGUE, Request, build_all, delta_of, find_mechanism
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lessnoise.changes import Changes
    from lessnoise.guarantees import Bracket
    from lessnoise.mechanism import Mechanism

# As in the page's boxes (controls.js): answers within them take seconds, not minutes.
RANGES = {"epsilon": (1e-6, 50.0), "delta": (1e-15, 0.4), "sensitivity": (1e-9, 1e9)}
LARGEST_DIMENSION = 10**9
_FIELDS = ("shape", "epsilon", "delta")
_KNOWN = (*_FIELDS, "sensitivity", "changes", "neighbours")
_LONGEST = 40  # characters of a number
_CURVE_TOLERANCE = 1e-3  # of a picture's points; their upper ends are proved all the same
_CURVE_POINTS = 36


def read_request(query: Mapping[str, Sequence[str]]) -> Request:
    """The request that an address asks for: shape, epsilon, delta, and sensitivity or changes, each once.

    >>> read_request({"shape": ["89x89"], "epsilon": ["1"], "delta": ["1e-6"], "sensitivity": ["2"]}).dimension
    7921
    >>> print(read_request({"shape": ["100"], "epsilon": ["1"], "delta": ["1e-6"], "changes": ["counts"]}).changes)
    at most 1 row, add/remove
    """
    for name, values in query.items():
        if name not in _KNOWN:
            raise InvalidInput(
                f"{_short(name)[1:-1]}={_short(values[0])} is not known: ask for shape, epsilon, delta, and for "
                "sensitivity or changes."
            )
    size = "changes" if "changes" in query else "sensitivity"
    optional = [name for name in ("sensitivity", "neighbours") if name in query]
    for name in dict.fromkeys((*_FIELDS, size, *optional)):
        if len(query.get(name, ())) != 1:
            raise InvalidInput(f"{name} is given {len(query.get(name, ()))} times: give it once.")
    given = {name: values[0] for name, values in query.items()}
    epsilon, delta = (_number(name, given[name]) for name in ("epsilon", "delta"))
    shape, relation = _shape(given["shape"]), _relation(given)
    if size == "sensitivity":
        return Request(epsilon, delta, _number("sensitivity", given["sensitivity"]), shape)
    if "sensitivity" in given:
        raise InvalidInput(f"sensitivity={_short(given['sensitivity'])} beside changes: leave one of them out.")
    return Request(epsilon, delta, None, shape, relation, changes=_changes(given["changes"], relation))  # type: ignore[arg-type]


def _relation(given: Mapping[str, str]) -> Neighbours:
    """That of counts; the other sets are the same under both."""
    text = given.get("neighbours", Neighbours.ADD_REMOVE.value)
    if text not in [each.value for each in Neighbours]:
        raise InvalidInput(f"neighbours={_short(text)} is not known: write add/remove or replace.")
    if "neighbours" in given and given.get("changes") != "counts":
        raise InvalidInput(f"neighbours={text} is for changes=counts alone: leave it out.")
    return Neighbours(text)


def _changes(text: str, relation: Neighbours) -> Changes:
    """One of the sets that the page offers, by the words of :func:`lessnoise.changes.parse`."""
    if text == "counts":
        return counts(neighbours=relation)
    if found := re.fullmatch(r"ball:([^,]*),norm=inf", text):
        return ball(_number("changes", found[1], "sensitivity"), norm=math.inf)
    if found := re.fullmatch(r"corner:([^,]*)", text):
        return corner(_number("changes", found[1], "sensitivity"))
    raise InvalidInput(
        f"changes={_short(text)} is not a set that is offered here: write counts, ball:1,norm=inf or corner:1."
    )


def _number(name: str, text: str, kind: str = "") -> float:
    """A number within the range of its kind, which is its name unless said."""
    try:
        if not re.fullmatch(r"[-+.0-9a-zA-Z]{1,40}", text):  # float() also takes spaces, 1_0 and \u0661
            raise ValueError(text)
        number = float(text)
    except ValueError:
        raise InvalidInput(f"{name}={_short(text)} is not a number: write one such as 0.5 or 1e-6.") from None
    least, most = RANGES[kind or name]
    if not least <= number <= most:
        raise InvalidInput(f"{name}={number} is out of range here: write a number between {least:g} and {most:g}.")
    return number


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,15}(x[0-9]{1,15}){0,3}", text):
        raise InvalidInput(f"shape={_short(text)} is not a shape: write 7921 or 89x89.")
    shape = tuple(int(part) for part in text.split("x"))
    if math.prod(shape) > LARGEST_DIMENSION:
        raise InvalidInput(f"shape={text} has more than {LARGEST_DIMENSION} entries: write a smaller one.")
    return shape


def _short(text: str) -> str:
    return ascii(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


@functools.lru_cache(maxsize=256)
def mechanisms(request: Request) -> dict[str, Any]:
    """Every mechanism that fits the request, those that keep it first, least loss first.

    >>> answer = mechanisms(Request(1.0, 1e-6, 1.0, (5,)))
    >>> answer["mechanisms"][0]["name"], answer["mechanisms"][0]["holds"]
    ('least-noise', True)
    """
    rows = [_row(mechanism) for mechanism in build_all(request)]
    return {"mechanisms": rows, "changes": str(request.changes or ball(request.sensitivity))}


def _row(mechanism: Mechanism) -> dict[str, Any]:
    verdict, claim = mechanism.check(), mechanism.claim  # all of the catalogue have one
    entry = CATALOGUE.get(mechanism.name)
    return {
        "name": mechanism.name,
        "label": mechanism.name if entry is None else entry.label,
        "claimed_delta": verdict.claimed.delta,
        "remark": "" if mechanism.design is None else mechanism.design.choice,
        "source": "" if claim is None else claim.source,
        "delta": verdict.exact.to_dict(),
        "bracket": _words(verdict.exact),
        "holds": verdict.holds,
        "refuted": verdict.refuted,
        "expected_loss": _finite(mechanism.expected_loss),
        "standard_deviation": _finite(mechanism.standard_deviation),
    }


def _words(bracket: Bracket) -> str:
    """Both ends, rounded outwards; one number where they are one."""
    low, high = down(bracket.lower, 5), up(bracket.upper, 5)
    return low if low == high else f"{low} to {high}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has no infinity


@functools.lru_cache(maxsize=256)
def least_noise_curve(request: Request) -> dict[str, Any]:
    """Points (epsilon, upper end of delta) of the least-noise mechanism around the target."""
    mechanism = find_mechanism("least-noise").build(request)
    steps = [0.01 * 3000.0 ** (i / _CURVE_POINTS) for i in range(_CURVE_POINTS + 1)]
    points = []
    for factor in sorted([*steps, 0.9, 0.97, 1.0]):
        epsilon = factor * request.epsilon
        upper = delta_of(mechanism.law, mechanism.dimension, mechanism.shift, epsilon, _CURVE_TOLERANCE).upper
        points.append([epsilon, max(upper, 1e-5 * request.delta)])
        if upper < 1e-4 * request.delta:
            break
    return {"name": mechanism.name, "points": points}

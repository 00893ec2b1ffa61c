"""What one unit can change of a query's answer, from the query's description, and whether the noise is made for it.

Every query is a sum over rows. A row adds whole steps of a grid, a power of two that follows from the public bounds,
so that sums are exact. Where they become floats they are rounded towards 0 to multiples of at most 2^10 steps: sums
that differ by n steps differ by at most n, rounded up to a multiple of 2^10, afterwards. A unit of k rows changes a
norm by at most k times as much as one row does, as norms obey the triangle inequality. If units are replaced, a row
becomes another one, or one that adds nothing.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lessnoise_verify.balls import ball as exact
from lessnoise_verify.balls import ends, shown, working
from lessnoise_verify.changes import RELATIONS, Changes, Moves, ball, counts
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise_verify.laws import Case

NORMS: Final[dict[str, float]] = {
    **dict.fromkeys(("radial", "shells", "matrix-gaussian", "discrete-gaussian"), 2),
    **dict.fromkeys(("laplace", "geometric", "discrete-power", "hierarchy", "measured", "quantile-choice", "dawa"), 1),
    **dict.fromkeys(("correlated-gaussian", "correlated-radial"), math.inf),
}
"""The norm in which a law's sensitivity is stated."""
WHOLE: Final = ("geometric", "discrete-gaussian", "discrete-power")
_SPACING: Final = 2**10
_ONE: Final = 2**30  # steps of what a row adds to a measure in all
_MOST_NAMES: Final = 2**14
_MOST_CELLS: Final = 10**9
_ORDERS: Final = (1, 2, math.inf)
_Ends = tuple[Fraction, Fraction]
_Asked = tuple[list[str], tuple[int, ...], "Effect"]


@dataclass(frozen=True)
class Unit:
    """The most rows that one unit has, in all and in one group, and the most groups."""

    rows: int = 1
    per_group: int = 1
    groups: int = 1
    user: bool = False

    @classmethod
    def read(cls, given: Fields) -> Unit:
        """A row, or a user with bounds on the rows."""
        if given.take("id") is None:
            if given.take("max_rows") is not None:
                raise Unreadable(f"{given.name} has max_rows, but no column with ids.")
            given.end()
            return cls()
        given.text("id")
        rows = given.whole("max_rows")
        groups, each = (given.whole(name) if name in given else None for name in ("max_groups", "max_rows_per_group"))
        given.end()
        rows = rows if groups is None or each is None else min(rows, groups * each)
        return cls(rows, min(rows, each or rows), min(rows, groups or rows), True)


@dataclass(frozen=True)
class Effect:
    """A set that holds all changes by one unit, and a change that some unit really makes."""

    changes: Changes
    made: Moves


@dataclass(frozen=True)
class Measure:
    """What each row adds to its group: 1 to one number, or numbers with an l1 norm of at most ``most``."""

    kind: str
    width: int
    most: Fraction | None = None
    spread: Fraction = Fraction(2)
    """So many times as much changes if a row is replaced and there is only one number."""

    def effect(self, groups: int, unit: Unit, relation: str) -> Effect:
        """What one unit changes of the numbers of all groups; a user counts once in a group of ``users``."""
        size = groups * self.width
        if self.kind == "users":
            return Effect(counts(unit.groups, 1, relation, size), Moves.of([(1, 1)]))
        # Each row adds 1 to the same number of its group.
        made = Moves.of([(unit.per_group, min(unit.rows // unit.per_group, groups))])
        if self.most is None:
            return Effect(counts(unit.rows, unit.per_group, relation, size), made)
        sides = Fraction(1) if relation == "add/remove" else Fraction(2) if size > 1 else self.spread
        return Effect(ball(unit.rows * self.most * sides, 1, size), made)


def check_query(query: Fields, noise: Fields, case: Case) -> None:
    """Refuted unless the mechanism's curve is for all changes of the query's answer."""
    unit, relation = Unit.read(query.fields("unit")), query.choice("neighbours", *RELATIONS)
    described = query.fields("description")
    kind = described.text("query")
    if kind not in _QUERIES:
        raise NotCovered(f"a query of kind {kind[:40]!r} has no proof here.")
    columns, shape, effect = _QUERIES[kind](described, unit, relation)
    described.end()
    if query.items("columns") != columns:
        raise Refuted("the stated columns are not those of the query's description.")
    if query.take("engine") is not None:
        query.text("engine")
    texts(query, "rules")
    query.end()
    if relation != case.relation:
        raise Refuted(f"the query is for {relation}, but the mechanism is for {case.relation}.")
    if shape != case.shape:
        raise Refuted(f"the answer has the shape {shape}, but the mechanism has {case.shape}.")
    check_covers(noise, case, effect)


def texts(given: Fields, name: str) -> list[str]:
    """A list of texts."""
    found = given.items(name)
    if not all(isinstance(each, str) for each in found):
        raise Unreadable(f"{given.name}.{name} is not a list of texts.")
    return found


# Whether the noise is made for the changes.


def check_covers(noise: Fields, case: Case, effect: Effect) -> None:
    """Refuted if a unit provably changes more than the mechanism hides; NotCovered if that is not decided."""
    kind, found = noise.text("kind"), effect.changes
    inner = noise.fields("noise").text("kind") if kind == "measured" else kind
    if inner in WHOLE and not found.whole:
        raise Refuted(f"{inner} noise is for whole numbers, which the answer need not be.")
    if _covers(kind, noise, case, found):
        return
    order = NORMS.get(kind)
    if order is not None:
        stated = max(case.sensitivity**2, Fraction(0) if case.changes is None else case.changes.squared_norm(order))
        needed = effect.made.squared_norm(order)
        if needed > stated:
            raise Refuted(
                f"one unit can change the answer by a norm of {shown(exact(needed).sqrt())}, but the mechanism hides "
                f"only {shown(exact(stated).sqrt())}."
            )
    raise NotCovered("no proof here decides whether the noise is enough for all that one unit can change.")


def _covers(kind: str, noise: Fields, case: Case, found: Changes) -> bool:
    """Whether the changes for which the mechanism's delta is the largest hold all those that were found."""
    mine, order, most = case.changes, NORMS.get(kind), case.sensitivity**2
    if kind in ("measured", "hierarchy") and mine is None and noise.choice("change", "any", "moved") == "moved":
        return found.side is not None and (2 * found.side) ** 2 <= most  # half of it leaves, half enters
    if mine is None:
        if kind == "generalized-gaussian" and (power := noise.number("p", 0.0)) >= 1:
            order = 2 if power >= 2 else 1  # an lp norm is at most one of lower order
        return order is not None and found.squared_norm(order) <= most and (order != math.inf or found.one_sided)
    balls = (each for each in _ORDERS if mine == ball(case.sensitivity, each, case.dimension))
    return mine == found or _in_box(found, mine) or any(found.squared_norm(each) <= most for each in balls)


def _in_box(found: Changes, mine: Changes) -> bool:
    """Whether mine are all changes within bounds, of one sign if others have one sign, and the others are in them."""
    if mine.bounds is None or (mine.one_sided and not found.one_sided):
        return False
    if found.bounds is None or 1 in (len(mine.bounds), len(found.bounds)):
        return found.squared_norm(math.inf) <= min(mine.bounds) ** 2
    return all(bound <= most for bound, most in zip(found.bounds, mine.bounds, strict=True))


# The queries.


def _squares(moves: list[Moves]) -> tuple[Fraction, Fraction, Fraction]:
    """The squares of the largest norms."""
    first, second, third = (max(each.squared_norm(order) for each in moves) for order in _ORDERS)
    return first, second, third


def _box(bounds: list[Fraction], one_sided: bool = False) -> Changes:
    """Every entry by at most its bound; of the same sign if it is one-sided."""
    worst = Moves.of((bound, 1) for bound in bounds)
    return Changes(_squares([worst]), worst, worst, one_sided=one_sided, solid=True, bounds=tuple(bounds))


def _root(square: Fraction) -> Fraction:
    """A root, rounded up; exact if it has at most 256 bits."""
    with working(256):
        return ends(exact(square).sqrt())[1]


def _step(size: Fraction, bits: int) -> Fraction:
    """The power of two with 2^(bits - 1) < size/step <= 2^bits."""
    if not Fraction(1e-100) <= size <= Fraction(1e100):
        raise Unreadable(f"bounds of size {float(size):g} are not between 1e-100 and 1e100.")
    exponent = size.numerator.bit_length() - size.denominator.bit_length() + 1  # size < 2^exponent
    while Fraction(2) ** (exponent - 1) >= size:
        exponent -= 1
    return Fraction(2) ** (exponent - bits)


def _whole_steps(ends: _Ends, step: Fraction) -> tuple[int, int]:
    """The first and the last whole number of steps within the ends; if there is none, the next one towards 0."""
    first, last = math.ceil(ends[0] / step), math.floor(ends[1] / step)
    return (first, last) if first <= last else (min(first, last, key=abs),) * 2


def _interval(value: object, name: str) -> _Ends:
    found = [Fraction(end) for end in numbers(value, name, 2)]
    if len(found) != 2 or found[0] >= found[1]:
        raise Unreadable(f"{name} are not a lower and a higher end.")
    return found[0], found[1]


def _size(ends: _Ends) -> Fraction:
    return max(map(abs, ends))


def _different(names: list[str], what: str) -> list[str]:
    if not 0 < len(names) <= _MOST_NAMES or len(set(names)) < len(names):
        raise Unreadable(f"{what} are not from 1 to {_MOST_NAMES} different columns.")
    return names


def _bounded(given: Fields) -> tuple[list[str], list[_Ends]]:
    """Columns, and the bounds of each."""
    names = _different(texts(given, "columns"), f"{given.name}.columns")
    found = [_interval(each, f"{given.name}.bounds") for each in given.items("bounds", _MOST_NAMES)]
    if len(found) != len(names):
        raise Unreadable(f"{given.name} has {len(found)} bounds for {len(names)} columns.")
    return names, found


def _histogram(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Each row is counted in one cell."""
    axes = [_axis(axis) for axis in given.objects("axes")]
    names, shape = _different([name for name, _ in axes], f"{given.name}.axes"), tuple(size for _, size in axes)
    if not 0 < math.prod(shape) <= _MOST_CELLS:
        raise Unreadable(f"{given.name}.axes have private keys, or more than {_MOST_CELLS} cells.")
    found = counts(unit.rows, unit.per_group, relation, math.prod(shape))
    return names, shape, Effect(found, found.majorant or Moves(()))


def _axis(given: Fields) -> tuple[str, int]:
    """The column and the number of its cells; 0: the keys are private."""
    column = given.text("column")
    given.choice("outside", "drop", "clamp") if "outside" in given else given.take("outside", None)
    if "bounds" in given:
        _interval(given.take("bounds"), f"{given.name}.bounds")
        size = given.whole("bins", 1, 10**8)
    elif "edges" in given:
        edges = given.numbers("edges")
        size = len(edges) - 1
        if size < 1 or any(left >= right for left, right in itertools.pairwise(edges)):
            raise Unreadable(f"{given.name}.edges do not rise.")
    elif given.take("keys") == "private":
        size = 0
    else:
        keys = given.items("keys")
        size = len(keys)
        if {type(key) for key in keys} not in ({str}, {int}) or len(set(keys)) < size:
            raise Unreadable(f"{given.name}.keys are not different texts, or whole numbers.")
    given.end()
    return column, size


def _sum(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Each row adds whole steps between its bounds; one that is replaced also moves from one end to the other."""
    names, bounds = _bounded(given)
    steps = [_step(_size(ends), 30) for ends in bounds]
    places = [_whole_steps(ends, step) for ends, step in zip(bounds, steps, strict=True)]
    kinds = [[max(abs(low), abs(high)) for low, high in places]]
    if relation == "replace":
        kinds.append([high - low for low, high in places])

    def sizes(rows: int, each: list[int], spacing: int) -> list[Fraction]:
        return [rows * -(-size // spacing) * spacing * step for size, step in zip(each, steps, strict=True)]

    above = [sizes(unit.rows, each, _SPACING) for each in kinds]
    if all(last >= first for first, last in zip(above[0], above[-1], strict=True)):
        changes = _box(above[-1], relation == "add/remove" and all(low >= 0 for low, _ in bounds))
    else:
        changes = Changes(_squares([Moves.of((size, 1) for size in each) for each in above]), None, None)
    made = [Moves.of((size, 1) for size in sizes(unit.per_group, each, 1)) for each in kinds]
    return names, (len(names),), Effect(changes, max(made, key=lambda moves: moves.squared_norm(2)))


def _mean(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Sums of (x - middle)/half-width, which lies in [-1, 1], and the number of rows unless that is public.

    A row that is replaced moves each sum by at most 2 and no count, or by at most 1 and the count by 1, which is less.
    """
    names, bounds = _bounded(given)
    size, public = len(names), given.take("rows") is not None
    if any(high - low < Fraction(2) ** -1021 for low, high in bounds):
        raise NotCovered("the bounds are too near to each other for floating point.")
    apart = all((high - low) * 2**10 >= _size((low, high)) for low, high in bounds)  # both ends are reached
    if public:
        given.whole("rows")
        if relation != "replace" or unit.user:
            raise Refuted("a number of rows is public only where single rows are replaced.")
        return names, (size,), Effect(_box([Fraction(2)] * size), Moves.of([(1 + apart, size)]))
    if relation == "add/remove":
        changes, made = _box([Fraction(unit.rows)] * (size + 1)), Moves.of([(1, size + 1)])
    else:
        changes = Changes(_squares([Moves.of([(2 * unit.rows, size)])]), None, None)
        made = Moves.of([(2, size)] if apart else [(1, size + 1)])
    return names, (size + 1,), Effect(changes, made.scaled(Fraction(unit.per_group)))


def _gram(given: Fields, unit: Unit, relation: str) -> _Asked:
    """X^T X. One row x adds x x^T, with the Frobenius norm |x|^2 and an l1 norm of at most d |x|^2.

    For two rows |x x^T - y y^T|^2 = |x|^4 + |y|^4 - 2 (x.y)^2; with one column it is a difference of squares. In a box
    every entry of x x^T also stays in its range. Floats take each entry 2^10 squared steps further.
    """
    names = _different(texts(given, "columns"), f"{given.name}.columns")
    d, replaced = len(names), relation == "replace"
    if given.take("norm") is not None:
        if given.take("box") is not None:
            raise Unreadable(f"{given.name} has a norm and a box.")
        norm = given.positive("norm")
        step = _step(norm, 18)
        l2 = norm**2
        made = Moves.of([((norm // step * step) ** 2, 2 if replaced and d > 1 else 1)])  # by rows along axes
    else:
        ends = _interval(given.take("box"), f"{given.name}.box")
        step = _step(_size(ends), 18)
        low, high = (steps * step for steps in _whole_steps(ends, step))
        square = max(low**2, high**2)
        l2, made = d * square, Moves.of([(square, d * d)])
    l1 = d * l2
    if replaced and d > 1:
        l2 = _root(2 * l2**2)
        l1 = d * l2
        if "box" in given:
            width = max(square, low * high) - min(low * high, Fraction(0))  # of the range off the diagonal
            l1 = min(l1, d * square + d * (d - 1) * width)
            l2 = min(l2, _root(d * square**2 + d * (d - 1) * width**2))
    further = _SPACING * step**2
    first, second = (unit.rows * (l1 + d * d * further)) ** 2, (unit.rows * (l2 + d * further)) ** 2
    changes = Changes((first, second, second), None, None)
    return names, (d, d), Effect(changes, made.scaled(Fraction(unit.per_group)))


def read_grouped(given: Fields) -> tuple[int, list[Measure]]:
    """The number of groups of a table (1: it has no axes; 0: the keys are private), and the measures of each group."""
    axes = dict(_axis(axis) for axis in given.objects("axes"))
    measures, groups = [_measure(measure) for measure in given.objects("measures", 1000)], math.prod(axes.values())
    if (
        not measures
        or len(axes) < len(given.items("axes"))
        or groups * sum(one.width for one in measures) > _MOST_CELLS
    ):
        raise Unreadable(f"{given.name} has no measures, an axis twice, or more than {_MOST_CELLS} numbers.")
    return groups, measures


def _measure(given: Fields) -> Measure:
    kind = given.choice("kind", "rows", "users", "moments", "total", "cells", "histogram", "products")
    slack = Fraction(_SPACING, _ONE)  # of each number, on the way to floats
    if kind in ("rows", "users"):
        found = Measure(kind, 1)
    elif kind in ("cells", "histogram"):
        found = Measure(kind, _axis(given.fields("axis"))[1])
        if found.width == 0:
            raise Unreadable(f"{given.name}.axis has private keys.")
    elif kind == "total":  # x over the larger size of its bounds
        _, (low, high) = _place(given)
        spread = (max(high, Fraction(0)) - min(low, Fraction(0))) / _size((low, high))
        found = Measure(kind, 1, 1 + slack, spread)
    elif kind == "moments":  # C(d, i) t^i (1 - t)^(d - i), whole steps that are never negative and add up to 1
        absent = given.truth("absent") if "absent" in given else bool(given.take("absent", False))
        width = given.whole("degree", 1, 2) + 1 + absent
        _place(given)
        found = Measure(kind, width, 1 + width * slack)
    else:  # the same of several columns multiplied, each rounded by half a step
        factors = list(given.objects("factors", 8))
        width = math.prod(factor.whole("degree", 1, 2) + 1 for factor in factors)
        _different([_place(factor)[0] for factor in factors], f"{given.name}.factors")
        for factor in factors:
            factor.end()
        found = Measure(kind, width, 1 + width * (slack + Fraction(1, 2 * _ONE)))
    given.end()
    return found


def _place(given: Fields) -> tuple[str, _Ends]:
    """A column and its bounds, which have an ordinary size."""
    found = _interval(given.take("bounds"), f"{given.name}.bounds")
    _step(_size(found), 30)
    return given.text("column"), found


_QUERIES: Final[dict[str, Callable[[Fields, Unit, str], _Asked]]] = {
    "histogram": _histogram,
    "sum": _sum,
    "mean": _mean,
    "gram": _gram,
}

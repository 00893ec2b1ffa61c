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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lessnoise_verify.balls import ball as exact
from lessnoise_verify.balls import shown
from lessnoise_verify.changes import RELATIONS, Changes, Moves, ball, counts, read_changes
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
_Squares = tuple[Fraction, Fraction, Fraction]
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

    def least(self, groups: int) -> _Squares:
        """Squared norms that are reached where each row may change one number of its group by 1."""
        one = Fraction(self.per_group**2)
        return Fraction(min(self.rows, groups * self.per_group) ** 2), one, one


@dataclass(frozen=True)
class Effect:
    """A set that holds all changes by one unit, and squares of l1, l2 and l-infinity norms that changes really have."""

    changes: Changes
    least: _Squares
    moved: int | None = None
    """Of rows that are replaced and counted: how many leave cells at most, and how many enter others."""


@dataclass(frozen=True)
class Measure:
    """What each row adds to its group: numbers with an l1 norm of at most 1 + excess, in the measure's own unit."""

    kind: str
    columns: tuple[str, ...]
    width: int
    spread: Fraction = Fraction(2)
    """The most by which a row that is replaced changes one number, where there is only one."""
    excess: Fraction = Fraction(0)

    @property
    def whole(self) -> bool:
        """Whether it counts rows, or users."""
        return self.kind in ("rows", "users", "cells", "histogram")

    def radius(self, groups: int, relation: str) -> Fraction:
        """The largest l1 norm of what one row changes."""
        added = Fraction(1) if self.whole else 1 + self.excess + Fraction(self.width * _SPACING, _ONE)
        if relation == "add/remove" or (self.whole and groups * self.width == 1):
            return added
        return added * (2 if groups * self.width > 1 else self.spread)

    def effect(self, groups: int, unit: Unit, relation: str) -> Effect:
        """What one unit changes of the numbers of all groups; a user counts once in a group of ``users``."""
        size, once = groups * self.width, self.kind == "users"
        if not self.whole:
            return Effect(ball(unit.rows * self.radius(groups, relation), 1, size), unit.least(groups))
        found = _counted(*((unit.groups, 1) if once else (unit.rows, unit.per_group)), relation, size)
        return replace(found, least=(Fraction(1),) * 3 if once else unit.least(groups))


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
        raise Refuted(f"the query is for {relation}, the mechanism for {case.relation}.")
    if shape != case.shape:
        raise Refuted(f"the answer has the shape {shape}, the mechanism {case.shape}.")
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
    if _covers(kind, noise, case, effect):
        return
    order = NORMS.get(kind)
    if order is not None:
        stated = max(case.sensitivity**2, Fraction(0) if case.changes is None else case.changes.squared_norm(order))
        needed = effect.least[_ORDERS.index(order)]
        if needed > stated:
            raise Refuted(
                f"one unit can change the answer by a norm of {shown(exact(needed).sqrt())}, the mechanism hides "
                f"{shown(exact(stated).sqrt())}."
            )
    raise NotCovered("it is not decided whether the noise is made for all that one unit can change of the answer.")


def _covers(kind: str, noise: Fields, case: Case, effect: Effect) -> bool:
    """Whether delta of the mechanism's changes is at least that of all changes in the set of the effect.

    A ball of the mechanism, with or without a name, must hold the set; else both sets are the same. With independent
    entries of a log-concave law, a change whose sorted entries are larger, one by one, loses more: every entry is a
    better pair for a test, and so is their product. For Laplace and geometric noise delta also rises along
    majorization.
    """
    mine, found, order, most = case.changes, effect.changes, NORMS.get(kind), case.sensitivity**2
    if mine == found:
        return True
    if kind in ("measured", "hierarchy") and noise.choice("change", "any", "moved") == "moved":
        return mine is None and effect.moved is not None and (2 * effect.moved) ** 2 <= most
    power = noise.number("p", 0.0) if kind in ("generalized-gaussian", "discrete-power") else Fraction(0)
    if kind == "generalized-gaussian":  # an lp norm is at most the l1 norm
        order = None if power < 1 else 2 if power == 2 else 1
    if mine is None:
        fits = order is not None and found.squared_norm(order) <= most
        return fits and (order != math.inf or found.one_sided)
    if any(
        mine == ball(case.sensitivity, each, case.dimension) and found.squared_norm(each) <= most for each in _ORDERS
    ):
        return True
    if kind == "laplace" or (kind == "geometric" and noise.number("tail", 0.0) == 0):
        return mine.majorant is not None and found.majorant is not None and mine.majorant.majorizes(found.majorant)
    log_concave = kind == "discrete-gaussian" or power >= 1
    return log_concave and bool(mine.dominant and found.dominant and mine.dominant.dominates(found.dominant))


# The queries.


def _moves(sizes: list[Fraction]) -> Moves:
    return Moves.of((size, 1) for size in sizes)


def _squares(moves: Moves) -> _Squares:
    return moves.squared_norm(1), moves.squared_norm(2), moves.squared_norm(math.inf)


def _largest(each: list[_Squares]) -> _Squares:
    first, second, third = (max(squares[i] for squares in each) for i in range(3))
    return first, second, third


def _box(bounds: list[Fraction], one_sided: bool = False) -> Changes:
    """Every entry by at most its bound, rounded up to a double, as a mechanism can state it."""
    found = [float(bound) for bound in bounds]
    up = [
        end if Fraction(end) >= bound else math.nextafter(end, math.inf)
        for end, bound in zip(found, bounds, strict=True)
    ]
    described = {"kind": "corner" if one_sided else "box", "bounds": up[0] if len(set(up)) == 1 else up}
    return read_changes(Fields(described, "changes"), (len(up),), "")


def _counted(rows: int, most: int, relation: str, size: int) -> Effect:
    found = counts(rows, most if most < rows else None, relation, size)
    return Effect(found, found.squares, rows if relation == "replace" else None)


def _root(square: Fraction) -> Fraction:
    """A root, rounded up to 100 bits or more; exact if it has no more."""
    bits = 100 + max(square.denominator.bit_length() - square.numerator.bit_length(), 0)
    scaled = math.ceil(square * 4**bits)
    root = math.isqrt(scaled)
    return Fraction(root + (root**2 < scaled), 2**bits)


def _step(size: Fraction, bits: int) -> Fraction:
    """The power of two with 2^(bits - 1) < size/step <= 2^bits."""
    if not Fraction(1e-100) <= size <= Fraction(1e100):
        raise Unreadable(f"bounds of size {float(size):g} are not between 1e-100 and 1e100.")
    exponent = size.numerator.bit_length() - size.denominator.bit_length() + 1  # size < 2^exponent
    while Fraction(2) ** (exponent - 1) >= size:
        exponent -= 1
    return Fraction(2) ** (exponent - bits)


def _whole_steps(ends: tuple[Fraction, Fraction], step: Fraction) -> tuple[int, int]:
    """The first and the last whole number of steps within the ends; if there is none, the next one towards 0."""
    first, last = math.ceil(ends[0] / step), math.floor(ends[1] / step)
    return (first, last) if first <= last else (min(first, last, key=abs),) * 2


def _spaced(steps: int) -> int:
    return -(-steps // _SPACING) * _SPACING


def _interval(value: object, name: str) -> tuple[Fraction, Fraction]:
    ends = [Fraction(end) for end in numbers(value, name, 2)]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise Unreadable(f"{name} are not a lower and a higher end.")
    return ends[0], ends[1]


def _size(ends: tuple[Fraction, Fraction]) -> Fraction:
    return max(map(abs, ends))


def _names(given: Fields) -> list[str]:
    names = texts(given, "columns")
    if not 0 < len(names) <= _MOST_NAMES or len(set(names)) < len(names):
        raise Unreadable(f"{given.name}.columns are not from 1 to {_MOST_NAMES} different names.")
    return names


def _bounds(given: Fields, names: list[str]) -> list[tuple[Fraction, Fraction]]:
    found = [_interval(each, f"{given.name}.bounds") for each in given.items("bounds", _MOST_NAMES)]
    if len(found) != len(names):
        raise Unreadable(f"{given.name} has {len(found)} bounds for {len(names)} columns.")
    return found


def _histogram(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Each row is counted in one cell."""
    axes = [read_axis(axis) for axis in given.objects("axes")]
    shape = tuple(size for _, size in axes)
    names = [name for name, _ in axes]
    if not shape or len(set(names)) < len(names) or not 0 < math.prod(shape) <= _MOST_CELLS:
        raise Unreadable(f"{given.name}.axes are none, of one column, or have more than {_MOST_CELLS} cells.")
    return names, shape, _counted(unit.rows, unit.per_group, relation, math.prod(shape))


def read_axis(given: Fields) -> tuple[str, int]:
    """The column and the number of its cells; 0: the keys are private."""
    column = given.text("column")
    given.choice("outside", "drop", "clamp") if "outside" in given else given.take("outside", None)
    forms = [name for name in ("bounds", "edges", "keys") if name in given]
    if forms == ["bounds"]:
        _interval(given.take("bounds"), f"{given.name}.bounds")
        size = given.whole("bins", 1, 10**8)
    elif forms == ["edges"]:
        edges = given.numbers("edges")
        size = len(edges) - 1
        if size < 1 or any(left >= right for left, right in itertools.pairwise(edges)):
            raise Unreadable(f"{given.name}.edges do not rise.")
    elif forms == ["keys"] and given.take("keys") == "private":
        size = 0
    else:
        keys = given.items("keys") if forms == ["keys"] else []
        size = len(keys)
        if not keys or {type(key) for key in keys} not in ({str}, {int}) or len(set(keys)) < size:
            raise Unreadable(f"{given.name} has no cells: neither bounds with bins, nor edges, nor different keys.")
    given.end()
    return column, size


def _sum(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Each row adds whole steps between its bounds; one that is replaced also moves from one end to the other."""
    names = _names(given)
    bounds = _bounds(given, names)
    steps = [_step(_size(ends), 30) for ends in bounds]
    places = [_whole_steps(ends, step) for ends, step in zip(bounds, steps, strict=True)]
    added, widths = [max(abs(low), abs(high)) for low, high in places], [high - low for low, high in places]
    kinds = [added] if relation == "add/remove" else [added, widths]

    def sizes(rows: int, of: list[int]) -> list[Fraction]:
        return [rows * size * step for size, step in zip(of, steps, strict=True)]

    above = [sizes(unit.rows, [_spaced(size) for size in each]) for each in kinds]
    if all(last >= first for first, last in zip(above[0], above[-1], strict=True)):
        changes = _box(above[-1], relation == "add/remove" and all(low >= 0 for low, _ in bounds))
    else:
        changes = Changes(_largest([_squares(_moves(each)) for each in above]), None, None)
    least = _largest([_squares(_moves(sizes(unit.per_group, each))) for each in kinds])
    return names, (len(names),), Effect(changes, least)


def _mean(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Sums of (x - middle)/half-width, which lies in [-1, 1], and the number of rows unless that is public.

    A row that is replaced moves each sum by at most 2 and no count, or by at most 1 and the count by 1.
    """
    names = _names(given)
    bounds, size = _bounds(given, names), len(names)
    public = given.whole("rows") if given.take("rows") is not None else None
    if any(high - low < Fraction(1e-290) for low, high in bounds):
        raise NotCovered("the bounds are too near to each other for floating point.")
    apart = all((high - low) * 2**10 >= _size((low, high)) for low, high in bounds)  # both ends are reached
    if public is not None:
        if relation != "replace" or unit.user:
            raise Refuted("a number of rows is public only where single rows are replaced.")
        box = _box([Fraction(2)] * size)
        return names, (size,), Effect(box, box.squares if apart else _squares(Moves.of([(1, size)])))
    added, share = Moves.of([(unit.rows, size + 1)]), Fraction(unit.per_group, unit.rows) ** 2
    both = _largest([_squares(added), _squares(Moves.of([(2 * unit.rows, size)]))])
    changes = _box([Fraction(unit.rows)] * (size + 1)) if relation == "add/remove" else Changes(both, None, None)
    first, second, third = changes.squares if apart else _squares(added)
    return names, (size + 1,), Effect(changes, (share * first, share * second, share * third))


def _matrix(unit: Unit, norms: tuple[Fraction, Fraction], least: tuple[Fraction, Fraction]) -> Effect:
    """Of the largest l1 and l2 norms by one row, and squares of such norms that rows have."""
    first, second = ((unit.rows * norm) ** 2 for norm in norms)
    lower, same = (unit.per_group**2 * square for square in least)
    return Effect(Changes((first, second, second), None, None), (lower, same, Fraction(0)))


def _gram(given: Fields, unit: Unit, relation: str) -> _Asked:
    """X^T X. One row x adds x x^T, with the Frobenius norm |x|^2 and an l1 norm of at most d |x|^2.

    For two rows |x x^T - y y^T|^2 = |x|^4 + |y|^4 - 2 (x.y)^2; with one column it is a difference of squares. In a box
    every entry of x x^T also stays in its range. Floats take each entry 2^10 squared steps further.
    """
    names = _names(given)
    d, replaced = len(names), relation == "replace"
    if given.take("norm") is not None:
        norm = given.positive("norm")
        if given.take("box") is not None:
            raise Unreadable(f"{given.name} has a norm and a box.")
        step = _step(norm, 18)
        square, reached = norm**2, (norm / step // 1 * step) ** 2  # by a row along an axis
        largest, entries = square, (2 * square, 2 * d * square)
        lengths = (2 if replaced and d > 1 else 1) * reached
        least = (lengths**2, lengths * reached)
    else:
        ends = _interval(given.take("box"), f"{given.name}.box")
        step = _step(_size(ends), 18)
        low, high = (steps * step for steps in _whole_steps(ends, step))
        square = max(low**2, high**2)
        width = max(square, low * high) - min(low * high, Fraction(0))
        largest = d * square
        entries = (_root(d * square**2 + d * (d - 1) * width**2), d * square + d * (d - 1) * width)
        least = ((d * largest) ** 2, largest**2)
    one, two = d * largest, largest
    if replaced:
        apart = largest if d == 1 else _root(2 * largest**2)
        one, two = min(d * apart, entries[1]), min(apart, entries[0])
    further = _SPACING * step**2
    return names, (d, d), _matrix(unit, (one + d * d * further, two + d * further), least)


def _second_moments(given: Fields, unit: Unit, relation: str) -> _Asked:
    """Z^T Z of rows z = (x, 1, f) with |x| <= norm and f = 0 or 1, so that |z|^2 <= norm^2 + 2; else as for X^T X."""
    names = _names(given)
    d, norm, replaced = len(names), given.positive("norm"), relation == "replace"
    shift = _line(given, "shift", d) if given.take("shift") is not None else [0.0] * d
    lines = _two_lines(given, "ends", d) if given.take("ends") is not None else None
    if given.values.get("query") == "scaled second moments":  # what is done to x before it is bounded
        _two_lines(given, "limits", d)
        _line(given, "middle", d)
        _line(given, "scale", d)
    size = norm
    if lines is not None:  # in floating point, as the step is chosen
        farthest = max(abs(end - by) for line in lines for end, by in zip(line, shift, strict=True))
        size = norm if farthest >= norm else Fraction(farthest)
    step, square = _step(size, 18), norm**2 + 2
    reached = norm / step // 1 * step if lines is None else Fraction(0)
    if replaced:  # (reached, 0, ...) by a row of zeros
        least = ((reached**2 + 2 * reached) ** 2, reached**4 + 2 * reached**2)
    else:
        least = ((reached + 1) ** 4, (reached**2 + 1) ** 2)
    further = _SPACING * d * (d * step**2 + 4 * step)
    norms = ((1 + replaced) * (d + 2) * square + further, (_root(2 * square**2) if replaced else square) + further)
    return names, (d + 2, d + 2), _matrix(unit, norms, least)


def _line(given: Fields, name: str, size: int) -> list[float]:
    found = given.numbers(name)
    if len(found) != size:
        raise Unreadable(f"{given.name}.{name} are not one number for each of {size} columns.")
    return found


def _two_lines(given: Fields, name: str, size: int) -> list[list[float]]:
    lines = given.items(name, 2)
    inside = Fields({str(place): line for place, line in enumerate(lines)}, f"{given.name}.{name}")
    if len(lines) != 2:
        raise Unreadable(f"{given.name}.{name} are not two lists.")
    return [_line(inside, str(place), size) for place in (0, 1)]


def read_grouped(given: Fields) -> tuple[list[str], int, list[Measure]]:
    """The columns, the number of groups (0: the keys are private), and the measures of each group."""
    axes = [read_axis(axis) for axis in given.objects("axes")]
    measures = [_measure(measure) for measure in given.objects("measures", 1000)]
    names, groups = [name for name, _ in axes], math.prod(size for _, size in axes)
    if not measures or len(set(names)) < len(names) or groups * sum(one.width for one in measures) > _MOST_CELLS:
        raise Unreadable(f"{given.name} has no measures, an axis twice, or more than {_MOST_CELLS} numbers.")
    columns = dict.fromkeys([*names, *(name for measure in measures for name in measure.columns)])
    return list(columns), groups, measures


def _measure(given: Fields) -> Measure:
    kind = given.choice("kind", "rows", "users", "moments", "total", "cells", "histogram", "products")
    if kind in ("rows", "users"):
        found = Measure(kind, (), 1)
    elif kind in ("cells", "histogram"):
        column, size = read_axis(given.fields("axis"))
        if size == 0:
            raise Unreadable(f"{given.name}.axis has private keys.")
        found = Measure(kind, (column,), size)
    elif kind == "products":  # C(d, i) t^i (1 - t)^(d - i) of all columns multiplied, each rounded by half a step
        factors = [_place(factor) for factor in given.objects("factors", 8)]
        width = math.prod(degree + 1 for _, _, degree in factors)
        names = tuple(name for name, _, _ in factors)
        if not names or len(set(names)) < len(names):
            raise Unreadable(f"{given.name}.factors are none, or name a column twice.")
        found = Measure(kind, names, width, excess=Fraction(width, 2 * _ONE))
    elif kind == "moments":  # never negative, and ONE steps in all
        absent = given.truth("absent") if "absent" in given else bool(given.take("absent", False))
        name, _, degree = _place(given, end=False)
        found = Measure(kind, (name,), degree + 1 + absent)
    else:  # x over the larger size of its bounds
        ends = _interval(given.take("bounds"), f"{given.name}.bounds")
        _step(_size(ends), 30)
        found = Measure(
            kind, (given.text("column"),), 1, (max(ends[1], Fraction(0)) - min(ends[0], Fraction(0))) / _size(ends)
        )
    given.end()
    return found


def _place(given: Fields, end: bool = True) -> tuple[str, tuple[Fraction, Fraction], int]:
    """A column, its bounds, and the power up to which moments of a value's place between them are wanted."""
    ends = _interval(given.take("bounds"), f"{given.name}.bounds")
    _step(_size(ends), 30)
    found = given.text("column"), ends, given.whole("degree", 1, 2)
    if end:
        given.end()
    return found


def _grouped(given: Fields, unit: Unit, relation: str) -> _Asked:
    """All measures side by side: their l1 norms add up."""
    columns, groups, measures = read_grouped(given)
    if groups == 0:
        raise Unreadable(f"{given.name} has private keys.")
    shape = (groups, sum(one.width for one in measures))
    radius = unit.rows * sum((one.radius(groups, relation) for one in measures), Fraction(0))
    changes = replace(ball(radius, 1, math.prod(shape)), whole=all(one.whole for one in measures))
    return columns, shape, Effect(changes, unit.least(groups))


_QUERIES: Final[dict[str, Callable[[Fields, Unit, str], _Asked]]] = {
    "histogram": _histogram,
    "sum": _sum,
    "mean": _mean,
    "gram": _gram,
    "second moments": _second_moments,
    "scaled second moments": _second_moments,
    "grouped": _grouped,
}

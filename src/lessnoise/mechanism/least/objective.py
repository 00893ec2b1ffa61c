"""What is minimised: the mean of an increasing function of the noise radius."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Charted, Estimates, Facts, Listed
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism.losses import log_raw_moment, quantile

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism.law import Law


class Problem(NamedTuple):
    """The least E f(|n|) that keeps (epsilon, target) against shifts of length 1 in R^dimension."""

    dimension: int
    epsilon: float
    target: float
    objective: Objective


@dataclass(frozen=True, slots=True)
class Power:
    """f(r) = r^order: order 2 is the mean squared error, order 1 the mean length."""

    order: float = 2.0

    def value(self, radius: Array) -> Array:
        """f at these radii."""
        return radius**self.order

    def slope(self, radius: Array) -> Array:
        """f' at these radii."""
        return self.order * radius ** (self.order - 1.0)

    def ball_mean(self, dimension: int, radius: Array) -> Array:
        """Mean of f over balls of these radii in R^dimension."""
        return dimension / (dimension + self.order) * radius**self.order

    def kinks(self) -> tuple[float, ...]:
        """Radii at which f is not smooth."""
        return ()

    def sag(self, left: Array, right: Array) -> Array:
        """A bound on how far f falls below its chord over intervals without kinks inside."""
        if self.order <= 1.0:
            return np.zeros_like(left)
        at = right if self.order >= 2.0 else np.maximum(left, 1e-300)
        quadratic = self.order * (self.order - 1.0) * at ** (self.order - 2.0) * (right - left) ** 2 / 8.0
        return np.minimum(quadratic, self.value(right) - self.value(left))


@dataclass(frozen=True, slots=True)
class Ramp:
    """0 up to ``start``, 1 from ``end`` on, linear in r^2 between: a softened P(r > q).

    f >= 1{r > end}, so E f <= a gives P(r > end) <= a; and f <= 1{r > start}, so a lower bound of
    E f bounds P(r > start).
    """

    start: float
    end: float

    def value(self, radius: Array) -> Array:
        """f at these radii."""
        return np.clip((radius**2 - self.start**2) / (self.end**2 - self.start**2), 0.0, 1.0)

    def slope(self, radius: Array) -> Array:
        """f' at these radii."""
        inside = (radius > self.start) & (radius < self.end)
        return np.where(inside, 2.0 * radius / (self.end**2 - self.start**2), 0.0)

    def ball_mean(self, dimension: int, radius: Array) -> Array:
        """Mean of f over balls of these radii."""
        m = dimension
        top = np.minimum(radius, self.end)
        with np.errstate(divide="ignore"):
            inner = np.exp(np.minimum(m * np.log(self.start / top), 0.0)) if self.start > 0 else np.zeros_like(top)
            whole = np.exp(m * np.log(top / radius))
        raw = m / (m + 2) * (top**2 - self.start**2 * inner) - self.start**2 * (1.0 - inner)
        mean = np.where(top > self.start, raw / (self.end**2 - self.start**2), 0.0)
        softened: Array = mean * whole + 1.0 - whole
        return softened

    def kinks(self) -> tuple[float, ...]:
        """Where f is not smooth."""
        return (self.start, self.end)

    def sag(self, left: Array, right: Array) -> Array:
        """How far f may fall below its chord."""
        inside = (left >= self.start) & (right <= self.end)
        return np.where(inside, (right - left) ** 2 / (4.0 * (self.end**2 - self.start**2)), 0.0)


Objective = Power | Ramp  # an increasing function f of the radius
_QUANTILE = "quantile:"


@dataclass(frozen=True, slots=True)
class Goal:
    """The mean of ||n||^2 ("squared"), of ||n|| ("l2"), or a quantile of ||n||^2 ("quantile:0.95").

    >>> Goal.of("quantile:0.95").probability
    0.95
    """

    name: str
    probability: float | None = None

    @classmethod
    def of(cls, objective: object) -> Goal:
        """Read the caller's words."""
        if objective in ("squared", "l2"):
            return cls(str(objective))
        if isinstance(objective, str) and objective.startswith(_QUANTILE):
            try:
                probability = float(objective.removeprefix(_QUANTILE))
            except ValueError:
                probability = math.nan
            return cls(objective, validation.probability(f"objective={objective!r}: probability", probability))
        raise InvalidInput(f'objective={objective!r} is not known: choose "squared", "l2" or "quantile:0.95".')

    @property
    def power(self) -> Power:
        """The objective whose optimum this is, or from which the search for a quantile starts."""
        return Power(1.0 if self.name == "l2" else 2.0)

    def log_size(self, law: Law, dimension: int) -> float:
        """ln of the law's size as a length: root mean square, mean length, or quantile of ||n||."""
        if self.probability is not None:
            return 0.5 * math.log(quantile(law, dimension, self.probability))
        if self.name == "l2":
            return log_raw_moment(law, dimension, 0.5)
        return 0.5 * log_raw_moment(law, dimension, 1)

    def loss_ratio(self, log_size_difference: float) -> float:
        """Ratio of losses from a difference of log-sizes: lengths for "l2", squares otherwise."""
        return math.exp(log_size_difference * (1.0 if self.name == "l2" else 2.0))


SMALLEST_GAIN = 1e-3
"""Share of the loss below which a gain over the Gaussian is given up for its simplicity."""

_NOTE = re.compile(
    r"(the (l2 mechanism|shell mechanism|radial family|uniform ball)|all but the Gaussian) was left out "
    r"\([^;\n]{1,400}\)"
    r"|a candidate was not certified and has been left out"
)


_WORDS = re.compile(r"[A-Za-z0-9 ,.()=x+-]{1,400}")


@dataclass(frozen=True, slots=True)
class Design(Listed, Charted):
    """The objective, the kind of law that won, what had to be left out ("" if nothing), and for how many releases.

    For a workload, ``compared`` lists what was tried, with the expected squared error of an answer.
    """

    objective: str
    choice: str
    note: str = ""
    releases: int = 1
    compared: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("objective", "choice", "note"):
            validation.text(name, getattr(self, name))
        settle(self, releases=validation.whole_number("releases", self.releases))
        if not isinstance(self.compared, (list, tuple)):
            raise InvalidInput(f"compared={shown(self.compared)} is not a list: read the file as it was written.")
        settle(self, compared=tuple(map(_candidate, self.compared)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        compared = [list(each) for each in values.pop("compared")]
        return {**values, "compared": compared} if compared else values

    @classmethod
    def from_dict(cls, values: dict[str, Any], law: Law, dimension: int) -> Design:
        """The inverse of :meth:`to_dict`, for a law: nothing is taken over that the law does not bear out."""
        values = validation.fields(values, ("objective", "choice"), "design", ("note", "releases", "compared"))
        expected = law.choice(dimension)
        if values["choice"] != expected:
            raise InvalidInput(
                f"choice={shown(values['choice'])} is not what this noise is ({expected}): read the file as it was "
                "written."
            )
        note, releases = checked_note(values.get("note", "")), values.get("releases", 1)
        compared = values.get("compared", ())
        return cls(Goal.of(values["objective"]).name, expected, note, releases, compared)

    def _facts(self) -> Facts:
        rows = [("objective", self.objective), ("law chosen", self.choice), ("releases", f"{self.releases:,}")]
        rows += [("note", self.note)] if self.note else []
        lines = [(name, f"{error:.5g}") for name, error in self.compared]
        return Facts("How the noise was chosen", rows, ("tried", "expected squared error") if lines else (), lines)

    def _chart(self) -> Estimates:
        if not self.compared:
            raise InvalidInput(
                f"compared=() of this design, so that there is nothing to draw: it is {self.choice}, and only a design "
                "for a workload lists what was tried."
            )
        names, errors = zip(*sorted(self.compared, key=lambda each: each[1]), strict=True)
        title = f"{len(names)} ways that were tried, the best on top"
        return Estimates(title, "expected squared error of an answer", names, errors)


def _candidate(given: object) -> tuple[str, float]:
    """The words and the error of one that was compared."""
    if not isinstance(given, (list, tuple)) or len(given) != 2 or not isinstance(given[0], str):
        raise InvalidInput(f"compared={shown(given)} is not a candidate with its error: read the file as written.")
    if not _WORDS.fullmatch(given[0]):
        raise InvalidInput("compared has words that no search of ours writes: read the file as it was written.")
    return given[0], validation.positive("error", given[1])


def checked_note(note: object) -> str:
    """A note that the search writes, and no other words.

    >>> checked_note("the shell mechanism was left out (too many steps)")
    'the shell mechanism was left out (too many steps)'
    """
    if not isinstance(note, str) or (note and not all(_NOTE.fullmatch(part) for part in note.split("; "))):
        raise InvalidInput("note says something that no search of ours writes: read the file as it was written.")
    return note

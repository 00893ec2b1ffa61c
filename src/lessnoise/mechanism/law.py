"""Noise laws, as frozen descriptions. What they cost and protect is computed elsewhere, from these fields.

A law is a frozen, hashable dataclass registered under its ``kind``. The functions over laws are
single-dispatch: :func:`lessnoise.mechanism.curve.law_delta`, :func:`lessnoise.mechanism.losses.log_raw_moment` and
:func:`~lessnoise.mechanism.losses.quantile`, :func:`lessnoise.mechanism.sampling.noise_form`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise.guarantees import Neighbours


class Law(Protocol):
    """What every noise law has."""

    kind: ClassVar[str]
    norm: ClassVar[str]
    integer: ClassVar[bool]
    data_dependent: ClassVar[bool]
    rounding: ClassVar[str]

    def __hash__(self) -> int: ...

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise InvalidInput if the law cannot serve arrays of this shape."""

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """Raise InvalidInput if the law's curve does not cover this relation."""

    def choice(self, dimension: int) -> str:
        """A few words on a law that the search for the least noise may choose."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Law:
        """The inverse of ``to_dict``."""


SMALLEST_POWER, SMALLEST_SHAPE = 1e-3, 1e-9  # p and k of a radial law
_KINDS: dict[str, type[Law]] = {}
_LawType = TypeVar("_LawType", bound=type[Law])


def register(law: _LawType) -> _LawType:
    """Class decorator: make a law known to :func:`law_from_dict` by its kind."""
    _KINDS[law.kind] = law
    return law


def law_from_dict(values: dict[str, Any]) -> Law:
    """The inverse of ``to_dict`` of any law."""
    kind = validation.fields(values, ("kind",), "noise", optional=None)["kind"]
    validation.choice("noise kind", kind, list(_KINDS))
    return _KINDS[kind].from_dict(values)


class Plain:
    """What most laws share: any shape, any relation, and a JSON round trip of plain fields."""

    kind: ClassVar[str]
    integer: ClassVar[bool] = False
    data_dependent: ClassVar[bool] = False  # its loss cannot be computed without the data
    rounding: ClassVar[str] = (
        "The output is exactly the real-valued noisy value, rounded to the grid. So floating point is covered, for "
        "IEEE 754 arithmetic and a mathematical library within 4 units of the last place (lessnoise selftest measures "
        "it)."
    )

    __slots__ = ()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Any shape will do."""

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """Any relation will do: the sensitivity says how far its neighbours lie apart."""

    def choice(self, dimension: int) -> str:
        """Its kind, in words."""
        return self.kind.replace("-", " ")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind} | {name: _plain(getattr(self, name)) for name in self._names()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Any:  # noqa: ANN401
        """The inverse of :meth:`to_dict`."""
        optional = [field.name for field in fields(cls) if field.default is not MISSING]  # type: ignore[arg-type]
        needed = [name for name in cls._names() if name not in optional]
        given = validation.fields(values, ("kind", *needed), f"{cls.kind} noise", optional)
        return cls(**{name: value for name, value in given.items() if name != "kind"})

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


@register
@dataclass(frozen=True, slots=True)
class Radial(Plain):
    """n = R U: a uniform direction U and a radius of density proportional to r^(k-1) exp(-(r/scale)^p).

    One family holds every isotropic mechanism:

    ===============================  ===  ===  ====================
    member                           k    p    scale
    ===============================  ===  ===  ====================
    i.i.d. Gaussian, variance s2     M    2    sqrt(2 s2)
    l2 mechanism                     M    1    scale
    R1SMG, eigenvalue sigma_*        1    2    sqrt(2 sigma_*)
    Gaussian in a random k-subspace  k    2    sqrt(2) sd
    ===============================  ===  ===  ====================
    """

    k: float
    p: float
    scale: float

    kind: ClassVar[str] = "radial"
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        settle(self, **{name: validation.positive(name, getattr(self, name)) for name in ("k", "p", "scale")})
        if not SMALLEST_POWER <= self.p <= 1.0 / SMALLEST_POWER or self.k < SMALLEST_SHAPE:
            raise InvalidInput(
                f"p={self.p:g}, k={self.k:g}: pass p from {SMALLEST_POWER:g} to {1.0 / SMALLEST_POWER:g} and k of at "
                f"least {SMALLEST_SHAPE:g}, for which the curve is computed."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The density falls with the radius, as the exact curve needs, only for k <= M."""
        dimension = math.prod(shape)
        if self.k > dimension:
            raise InvalidInput(
                f"k={self.k:g} exceeds the dimension M={dimension}: pass 0 < k <= M, so that the density falls "
                "with the distance."
            )

    def scaled(self, factor: float) -> Radial:
        """All radii multiplied by a factor."""
        return Radial(self.k, self.p, self.scale * factor)

    def choice(self, dimension: int) -> str:
        """The member of the family, in a few words."""
        if self.is_gaussian(dimension):
            return "Gaussian"
        named = self.k == dimension and self.p == 1.0
        return "l2 mechanism" if named else f"radial (k = {self.k:.4g}, p = {self.p:.4g})"

    def is_gaussian(self, dimension: int) -> bool:
        """Independent normal coordinates."""
        return self.k == dimension and self.p == 2.0


@register
@dataclass(frozen=True, slots=True)
class Laplace(Plain):
    """Independent coordinates of density exp(-|x|/scale)/(2 scale), for an l1 sensitivity."""

    scale: float

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        settle(self, scale=validation.positive("scale", self.scale))

"""Noise laws, as frozen descriptions. What they cost and protect is computed elsewhere, from these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lessnoise import validation
from lessnoise.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Radial:
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
        for name in ("k", "p", "scale"):
            object.__setattr__(self, name, validation.positive(name, getattr(self, name)))

    def check_dimension(self, dimension: int) -> None:
        """The density falls with the radius, as the exact curve needs, only for k <= M."""
        if self.k > dimension:
            raise InvalidInput(
                f"k={self.k:g} exceeds the dimension M={dimension}: pass 0 < k <= M, so that the density falls "
                "with the distance."
            )

    def is_gaussian(self, dimension: int) -> bool:
        """Independent normal coordinates."""
        return self.k == dimension and self.p == 2.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "k": self.k, "p": self.p, "scale": self.scale}


@dataclass(frozen=True, slots=True)
class Laplace:
    """Independent coordinates of density exp(-|x|/scale)/(2 scale), for an l1 sensitivity."""

    scale: float

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validation.positive("scale", self.scale))

    def check_dimension(self, dimension: int) -> None:
        """Any dimension will do."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "scale": self.scale}


Law = Radial | Laplace

_KINDS: dict[str, type[Radial] | type[Laplace]] = {Radial.kind: Radial, Laplace.kind: Laplace}


def law_from_dict(values: dict[str, Any]) -> Law:
    """The inverse of ``to_dict`` of any noise."""
    validation.choice("noise kind", values.get("kind"), list(_KINDS))
    fields = {name: value for name, value in values.items() if name != "kind"}
    return _KINDS[values["kind"]](**fields)

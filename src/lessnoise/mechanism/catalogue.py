"""Every mechanism by name, built from one common request: what plans, checks and comparisons iterate over."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput, LessnoiseError
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import builders

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Request:
    """A target and a value to protect; ``l1_sensitivity`` and (k, p) serve the mechanisms that need them."""

    epsilon: float
    delta: float
    sensitivity: float
    shape: tuple[int, ...]
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    l1_sensitivity: float | None = None
    k: float | None = None
    p: float | None = None

    def __post_init__(self) -> None:
        validation.epsilon(self.epsilon)
        validation.delta(self.delta)
        validation.sensitivity(self.sensitivity)
        object.__setattr__(self, "shape", validation.shape(self.shape))
        object.__setattr__(self, "neighbours", Neighbours.of(self.neighbours))
        if self.l1_sensitivity is not None:
            validation.sensitivity(self.l1_sensitivity, "l1_sensitivity")

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def l1(self) -> float:
        """The l1 sensitivity, or the largest that the l2 sensitivity allows: sqrt(M) D."""
        if self.l1_sensitivity is not None:
            return self.l1_sensitivity
        return self.sensitivity * math.sqrt(self.dimension) * (1.0 + 1e-15)


@dataclass(frozen=True, slots=True)
class Entry:
    """One mechanism of the catalogue. ``exact`` ones are calibrated on their curve; the others follow a claim."""

    name: str
    summary: str
    exact: bool
    build: Callable[[Request], Mechanism]


def _r1smg(request: Request, calibration: str) -> Mechanism:
    return builders.r1smg(
        epsilon=request.epsilon,
        delta=request.delta,
        sensitivity=request.sensitivity,
        shape=request.shape,
        neighbours=request.neighbours,
        calibration=calibration,  # type: ignore[arg-type]
    )


def _zhao(request: Request, variant: int) -> Mechanism:
    return builders.zhao_gaussian(
        epsilon=request.epsilon,
        delta=request.delta,
        sensitivity=request.sensitivity,
        shape=request.shape,
        neighbours=request.neighbours,
        variant=variant,  # type: ignore[arg-type]
    )


def _standard(builder: Callable[..., Mechanism]) -> Callable[[Request], Mechanism]:
    def build(request: Request) -> Mechanism:
        return builder(
            epsilon=request.epsilon,
            delta=request.delta,
            sensitivity=request.sensitivity,
            shape=request.shape,
            neighbours=request.neighbours,
        )

    return build


def _laplace(request: Request) -> Mechanism:
    return builders.laplace(
        epsilon=request.epsilon, sensitivity=request.l1, shape=request.shape, neighbours=request.neighbours
    )


def _radial(request: Request) -> Mechanism:
    if request.k is None or request.p is None:
        raise InvalidInput(f"k={request.k}, p={request.p} do not name a radial member: pass both k and p.")
    return builders.radial(
        epsilon=request.epsilon,
        delta=request.delta,
        sensitivity=request.sensitivity,
        shape=request.shape,
        neighbours=request.neighbours,
        k=request.k,
        p=request.p,
    )


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "analytic-gaussian", "normal noise, smallest sufficient sigma", True, _standard(builders.analytic_gaussian)
        ),
        Entry("l2", "density falling exponentially with the distance", True, _standard(builders.l2_mechanism)),
        Entry("radial", "any radial member, by --k and --p", True, _radial),
        Entry("laplace", "independent Laplace noise, pure DP, l1 sensitivity", True, _laplace),
        Entry("zhao-gaussian-1", "normal noise, closed form 1 of Zhao et al.", True, lambda r: _zhao(r, 1)),
        Entry("zhao-gaussian-2", "normal noise, closed form 2 of Zhao et al.", True, lambda r: _zhao(r, 2)),
        Entry("r1smg", "rank-1 noise in a random direction, exact calibration", True, lambda r: _r1smg(r, "exact")),
        Entry("classic-gaussian", "normal noise, textbook sigma", False, _standard(builders.classic_gaussian)),
        Entry("r1smg-published", "rank-1 noise, sigma_* of the paper", False, lambda r: _r1smg(r, "published")),
    )
}


def find(name: str) -> Entry:
    """The entry of a name.

    >>> find("l2").exact
    True
    """
    if name not in CATALOGUE:
        raise InvalidInput(f"mechanism={name!r} is not known: choose one of {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def build_all(request: Request) -> list[Mechanism]:
    """Every mechanism that can be built for the request; those that keep their claim first, least loss first."""
    built = []
    for entry in CATALOGUE.values():
        if entry.name == "radial" and (request.k is None or request.p is None):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ClaimWarning)
                built.append(entry.build(request))
        except LessnoiseError:
            continue  # not made for this request, such as the published R1SMG at M <= 2
    return sorted(built, key=lambda mechanism: (not mechanism.check().holds, mechanism.expected_loss))


def best(request: Request) -> Mechanism:
    """The certified mechanism of least expected loss."""
    return build_all(request)[0]

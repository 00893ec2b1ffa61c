"""Every mechanism by name, built from one common request: what plans, checks and comparisons iterate over."""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.changes import corner
from lessnoise.errors import ClaimWarning, InvalidInput, LessnoiseError
from lessnoise.mechanism import builders, choice, counts, families
from lessnoise.mechanism.least import builder as least
from lessnoise.mechanism.least.correlated import correlated_radial

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Request

    Build = Callable[[Request], Mechanism]


@dataclass(frozen=True, slots=True)
class Entry:
    """One mechanism of the catalogue. ``exact`` ones are calibrated on their curve; the others follow a claim."""

    name: str
    label: str
    summary: str
    exact: bool
    build: Build


LEAST_COUNT_NOISE = families.LEAST_COUNT_NOISE
_DESCRIPTIONS = {  # label and summary
    least.LEAST_NOISE: ("Least noise", "the smallest certified loss: shells, a radial member or the Gaussian"),
    "analytic-gaussian": ("Analytic Gaussian", "normal noise, smallest sufficient sigma"),
    "l2": ("l2 mechanism", "density falling exponentially with the distance"),
    "radial": ("Radial member", "any radial member, by k and p"),
    "laplace": ("Laplace mechanism", "independent Laplace noise, pure, l1 sensitivity"),
    LEAST_COUNT_NOISE: ("Least count noise", "the optimal integers where one individual changes one count by 1"),
    "geometric": ("Geometric mechanism", "independent geometric integers, pure, l1 sensitivity"),
    "discrete-power": (
        "Discrete power noise",
        "integers between geometric and Gaussian, for several counts",
    ),
    "discrete-gaussian": ("Discrete Gaussian", "integer noise for integer-valued arrays"),
    "correlated-gaussian": (
        "Correlated Gaussian",
        "normal noise with a common part, for sums of entries in [0, entry_bound]",
    ),
    "correlated-radial": (
        "Correlated least noise",
        "the least noise of a ball with a common part, for sums of entries in [0, entry_bound]",
    ),
    "norm-radial": ("Norm-radial noise", "level sets in the shape of the changes, for boxes and corners"),
    "mvg": ("MVG, calibrated exactly", "matrix-variate normal noise"),
    "mgm": ("MGM", "matrix normal noise, equal to the analytic Gaussian"),
    "generalized-gaussian": ("Generalized Gaussian", "density exp(-|x/b|^p), by p"),
    "zhao-gaussian-1": ("Zhao Gaussian 1", "normal noise, closed form 1 of Zhao et al."),
    "zhao-gaussian-2": ("Zhao Gaussian 2", "normal noise, closed form 2 of Zhao et al."),
    "r1smg": ("R1SMG, calibrated exactly", "normal noise along one random direction"),
    "classic-gaussian": ("Classic Gaussian", "normal noise, textbook sigma"),
    "hb": ("H_b", "consistent tree of counts, Laplace noise, pure"),
    "hb-gaussian": ("H_b, Gaussian", "consistent tree of counts, normal noise"),
    "dawa": ("DAWA", "counts in buckets that follow the data, pure"),
    "dawa-dpcomp": ("DAWA, published", "counts in buckets that follow the data, stage 1 as published"),
    "mvg-code": ("MVG, authors' first code", "matrix-variate normal noise, with the square root of zeta"),
    "mvg-published": ("MVG, published", "matrix-variate normal noise, by its theorem"),
    "product-noise": ("Product noise, published", "product noise, by its theorem"),
    "r1smg-published": ("R1SMG, published", "normal noise along one random direction, sigma_* of the paper"),
}
_FOLLOWING_A_CLAIM = {
    "classic-gaussian",
    "dawa-dpcomp",
    "mvg-code",
    "mvg-published",
    "product-noise",
    "r1smg-published",
}


def _standard(builder: Callable[..., Mechanism], **fixed: object) -> Build:
    return lambda request: builder(**request.standard(), **fixed)


def _needing(name: str, builder: Callable[..., Mechanism], *needed: str, **fixed: object) -> Build:
    """For a builder that takes optional fields of the request, too."""

    def build(request: Request) -> Mechanism:
        return builder(**request.standard(), **{field: request.need(field, name) for field in needed}, **fixed)

    return build


def _discrete(request: Request) -> Mechanism:
    _need_integers("discrete-gaussian", request)
    return families.discrete_gaussian(**request.standard())


def _generalized(request: Request) -> Mechanism:
    p = request.need("p", "generalized-gaussian")
    return families.generalized_gaussian(**request.standard(sensitivity=request.largest_norm(p)), p=p)


def _correlated(request: Request) -> Mechanism:
    bound = request.need("entry_bound", "correlated-gaussian")
    return families.correlated_gaussian(**request.standard(sensitivity=bound))


def _product(request: Request) -> Mechanism:
    return families.product_noise(**request.pure(), k=1000.0 if request.k is None else request.k)


def _for_counts(builder: Callable[..., Mechanism], **fixed: object) -> Build:
    def build(request: Request) -> Mechanism:
        if not request.counts:
            raise InvalidInput("counts=False, but H_b and DAWA are for histograms: say that the value is one.")
        left_out = ("sensitivity",) if fixed.get("noise") == "gaussian" else ("sensitivity", "delta")
        arguments = request.standard(*left_out)
        if request.moved and builder is counts.hb:
            arguments["change"] = "moved"
        size = request.need("l1_sensitivity", "a mechanism for histograms")
        if "change" in arguments:
            size = request.l1_of_counts
        return builder(**arguments, l1_sensitivity=size, **fixed)

    return build


def _least(request: Request) -> Mechanism:
    if request.changes is not None:
        return choice.least_for(request)
    return least.least_in_ball(**request.standard(), objective=request.objective)


def _geometric(request: Request) -> Mechanism:
    _need_integers("geometric", request)
    return families.geometric(**request.pure(sensitivity=_l1(request)))


def _integer_optimum(request: Request) -> Mechanism:
    _need_integers(LEAST_COUNT_NOISE, request)
    return families.geometric(**request.standard(sensitivity=_l1(request)))


def _need_integers(name: str, request: Request) -> None:
    if not request.integer:
        raise InvalidInput(f"integer=False, but {name} is for whole numbers: say that the value is integer.")


def _l1(request: Request) -> float:
    return request.need("l1_sensitivity", "geometric noise")


def _of_a_set(name: str, builder: Callable[..., Mechanism]) -> Build:
    """For a builder that is made for a set of changes."""

    def build(request: Request) -> Mechanism:
        changes = request.changes
        if changes is None and request.entry_bound is not None:
            changes = corner(request.entry_bound)
        if changes is None:
            raise InvalidInput(f"changes=None, but {name} needs a set: pass changes, such as lessnoise.changes.box(1).")
        return replace(builder(**request.standard("sensitivity", changes=changes)), name=name)

    return build


def _against(build: Build) -> Build:
    """What is built is for the request's changes, if it names them."""

    def built(request: Request) -> Mechanism:
        found = build(request)
        return found if request.changes is None else found.against(request.changes)

    return built


_BUILDERS: dict[str, Build] = {
    least.LEAST_NOISE: _least,
    "analytic-gaussian": _standard(builders.analytic_gaussian),
    "l2": _standard(builders.l2_mechanism),
    "radial": _needing("radial", builders.radial, "k", "p"),
    "laplace": lambda request: builders.laplace(**request.pure(sensitivity=request.l1)),
    LEAST_COUNT_NOISE: _integer_optimum,
    "geometric": _geometric,
    "discrete-power": choice.discrete_power,
    "discrete-gaussian": _discrete,
    "correlated-gaussian": _correlated,
    "correlated-radial": _of_a_set("correlated-radial", correlated_radial),
    "norm-radial": _of_a_set("norm-radial", families.norm_radial),
    "mvg": _standard(families.mvg, calibration="exact"),
    "mgm": _standard(families.mgm),
    "generalized-gaussian": _generalized,
    "zhao-gaussian-1": _standard(builders.zhao_gaussian, variant=1),
    "zhao-gaussian-2": _standard(builders.zhao_gaussian, variant=2),
    "r1smg": _standard(builders.r1smg, calibration="exact"),
    "classic-gaussian": _standard(builders.classic_gaussian),
    "hb": _for_counts(counts.hb),
    "hb-gaussian": _for_counts(counts.hb, noise="gaussian"),
    "dawa": _for_counts(counts.dawa),
    "dawa-dpcomp": _for_counts(counts.dawa, noise="dpcomp"),
    "mvg-code": _needing("mvg-code", families.mvg, "bound", calibration="code"),
    "mvg-published": _needing("mvg-published", families.mvg, "bound", calibration="published"),
    "product-noise": _product,
    "r1smg-published": _standard(builders.r1smg, calibration="published"),
}
BEST = "best"
CATALOGUE = {
    name: Entry(name, *_DESCRIPTIONS[name], name not in _FOLLOWING_A_CLAIM, _against(build))
    for name, build in _BUILDERS.items()
}


def find_mechanism(name: str) -> Entry:
    """The entry of a name.

    >>> find_mechanism("l2").exact
    True
    """
    if name not in CATALOGUE:
        raise validation.unknown("mechanism", name, CATALOGUE)
    return CATALOGUE[name]


def choose_mechanism(name: str, request: Request) -> Mechanism:
    """The mechanism of a name, or what is :func:`best` for the request."""
    if name != BEST and name not in CATALOGUE:
        raise validation.unknown("mechanism", name, [BEST, *CATALOGUE])
    return best(request) if name == BEST else find_mechanism(name).build(request)


def build_all(request: Request) -> list[Mechanism]:
    """Every mechanism that can be built for the request; those that keep the target first, least loss first."""
    built = []
    for entry in CATALOGUE.values():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ClaimWarning)
                built.append(entry.build(request))
        except LessnoiseError:
            continue  # not made for this request: the published R1SMG at M <= 2, a matrix mechanism for a vector
    return sorted(built, key=lambda mechanism: (not keeps(mechanism, request), _rank(mechanism)))


def _rank(mechanism: Mechanism) -> float:
    """Expected loss; the least-noise search takes the Gaussian for gains that it holds too small to matter.

    What depends on the data comes last.
    """
    if mechanism.law.data_dependent:
        return math.inf
    return mechanism.expected_loss * (1.0 - least.SMALLEST_GAIN if mechanism.name == least.LEAST_NOISE else 1.0)


def keeps(mechanism: Mechanism, request: Request) -> bool:
    """The mechanism's exact curve keeps the requested target, whatever is claimed of it."""
    return mechanism.delta(request.epsilon).upper <= request.delta


def best(request: Request) -> Mechanism:
    """The least noise for the request's changes, or, without these, for its l2 sensitivity and what else is known.

    An l1 sensitivity can make Laplace or, for whole numbers, geometric noise better, an entry bound correlated noise.
    """
    names = [least.LEAST_NOISE]
    if request.changes is None:
        if request.l1_sensitivity is not None:
            names += [LEAST_COUNT_NOISE, "geometric"] if request.integer else ["laplace"]
        if request.entry_bound is not None:
            names += ["correlated-gaussian", "correlated-radial", "norm-radial"]
    found = []
    for name in names:
        with contextlib.suppress(InvalidInput):  # an optimum that is for other changes
            found.append(find_mechanism(name).build(request))
    if not found:
        return find_mechanism(least.LEAST_NOISE).build(request)
    return min((mechanism for mechanism in found if keeps(mechanism, request)), key=_rank)

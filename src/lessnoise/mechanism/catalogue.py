"""Every mechanism by name, built from one common request: what plans, checks and comparisons iterate over."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput, LessnoiseError
from lessnoise.mechanism import builders, counts, families
from lessnoise.mechanism.least import builder as least

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Request


@dataclass(frozen=True, slots=True)
class Entry:
    """One mechanism of the catalogue. ``exact`` ones are calibrated on their curve; the others follow a claim."""

    name: str
    label: str
    summary: str
    exact: bool
    build: Callable[[Request], Mechanism]


def _standard(builder: Callable[..., Mechanism], **fixed: object) -> Callable[[Request], Mechanism]:
    return lambda request: builder(**request.standard(), **fixed)


def _least(request: Request) -> Mechanism:
    return least.least_noise(**request.standard(), objective=request.objective)


def _laplace(request: Request) -> Mechanism:
    return builders.laplace(
        epsilon=request.epsilon, sensitivity=request.l1, shape=request.shape, neighbours=request.neighbours
    )


def _radial(request: Request) -> Mechanism:
    return builders.radial(**request.standard(), k=request.need("k", "radial"), p=request.need("p", "radial"))


def _discrete(request: Request) -> Mechanism:
    if not request.integer:
        raise InvalidInput("integer=False, but discrete-gaussian is for whole numbers: say that the value is integer.")
    return families.discrete_gaussian(**request.standard())


def _generalized(request: Request) -> Mechanism:
    p = request.need("p", "generalized-gaussian")
    return families.generalized_gaussian(**{**request.standard(), "sensitivity": request._largest(p)}, p=p)


def _correlated(request: Request) -> Mechanism:
    bound = request.need("entry_bound", "correlated-gaussian")
    return families.correlated_gaussian(**{**request.standard(), "sensitivity": bound})


def _product(request: Request) -> Mechanism:
    arguments = request.standard()
    del arguments["delta"]
    return families.product_noise(**arguments, k=1000.0 if request.k is None else request.k)


def _published_mvg(request: Request) -> Mechanism:
    bound = request.need("bound", "mvg-published")
    return families.mvg(**request.standard(), bound=bound, calibration="published")


def _for_counts(builder: Callable[..., Mechanism], **fixed: object) -> Callable[[Request], Mechanism]:
    def build(request: Request) -> Mechanism:
        if not request.counts:
            raise InvalidInput("counts=False, but H_b and DAWA are for histograms: say that the value is one.")
        delta = {"delta": request.delta} if fixed.get("noise") == "gaussian" else {}
        change = {"change": "moved"} if request.moved and builder is counts.hb else {}
        return builder(
            epsilon=request.epsilon,
            shape=request.shape,
            neighbours=request.neighbours,
            l1_sensitivity=request.need("l1_sensitivity", "a mechanism for histograms"),
            **delta,
            **change,
            **fixed,
        )

    return build


_ENTRIES = (
    Entry(
        least.LEAST_NOISE,
        "Least noise",
        "the smallest certified loss: shells, a radial member or the Gaussian",
        True,
        _least,
    ),
    Entry(
        "analytic-gaussian",
        "Analytic Gaussian",
        "normal noise, smallest sufficient sigma",
        True,
        _standard(builders.analytic_gaussian),
    ),
    Entry(
        "l2", "l2 mechanism", "density falling exponentially with the distance", True, _standard(builders.l2_mechanism)
    ),
    Entry("radial", "Radial member", "any radial member, by k and p", True, _radial),
    Entry("laplace", "Laplace mechanism", "independent Laplace noise, pure, l1 sensitivity", True, _laplace),
    Entry(
        "discrete-gaussian",
        "Discrete Gaussian",
        "integer noise for integer-valued arrays",
        True,
        _discrete,
    ),
    Entry(
        "correlated-gaussian",
        "Correlated Gaussian",
        "normal noise with a common part, for sums of entries in [0, entry_bound]",
        True,
        _correlated,
    ),
    Entry(
        "mvg",
        "MVG, calibrated exactly",
        "matrix-variate normal noise",
        True,
        _standard(families.mvg, calibration="exact"),
    ),
    Entry("mgm", "MGM", "matrix normal noise, equal to the analytic Gaussian", True, _standard(families.mgm)),
    Entry("generalized-gaussian", "Generalized Gaussian", "density exp(-|x/b|^p), by p", True, _generalized),
    Entry(
        "zhao-gaussian-1",
        "Zhao Gaussian 1",
        "normal noise, closed form 1 of Zhao et al.",
        True,
        _standard(builders.zhao_gaussian, variant=1),
    ),
    Entry(
        "zhao-gaussian-2",
        "Zhao Gaussian 2",
        "normal noise, closed form 2 of Zhao et al.",
        True,
        _standard(builders.zhao_gaussian, variant=2),
    ),
    Entry(
        "r1smg",
        "R1SMG, calibrated exactly",
        "normal noise along one random direction",
        True,
        _standard(builders.r1smg, calibration="exact"),
    ),
    Entry(
        "classic-gaussian",
        "Classic Gaussian",
        "normal noise, textbook sigma",
        False,
        _standard(builders.classic_gaussian),
    ),
    Entry("hb", "H_b", "consistent tree of counts, Laplace noise, pure", True, _for_counts(counts.hb)),
    Entry(
        "hb-gaussian",
        "H_b, Gaussian",
        "consistent tree of counts, normal noise",
        True,
        _for_counts(counts.hb, noise="gaussian"),
    ),
    Entry("dawa", "DAWA", "counts in buckets that follow the data, pure", True, _for_counts(counts.dawa)),
    Entry(
        "dawa-dpcomp",
        "DAWA, published",
        "counts in buckets that follow the data, stage 1 as published",
        False,
        _for_counts(counts.dawa, noise="dpcomp"),
    ),
    Entry("mvg-published", "MVG, published", "matrix-variate normal noise, by its theorem", False, _published_mvg),
    Entry("product-noise", "Product noise, published", "product noise, by its theorem", False, _product),
    Entry(
        "r1smg-published",
        "R1SMG, published",
        "normal noise along one random direction, sigma_* of the paper",
        False,
        _standard(builders.r1smg, calibration="published"),
    ),
)
BEST = "best"
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


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
    """The least-noise mechanism, or one that what is known beyond the l2 sensitivity makes better.

    An l1 sensitivity can make Laplace noise better, an entry bound correlated noise.
    """
    found = [find_mechanism(least.LEAST_NOISE).build(request)]
    if request.l1_sensitivity is not None:
        found.append(find_mechanism("laplace").build(request))
    if request.entry_bound is not None:
        found.append(find_mechanism("correlated-gaussian").build(request))
    kept = [mechanism for mechanism in found if keeps(mechanism, request)]
    return min(kept, key=_rank)

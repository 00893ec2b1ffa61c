r"""PPCA: principal components drawn by the exponential mechanism (Chaudhuri, Sarwate & Sinha, JMLR 2013).

The frame V of k components has density proportional to exp(w tr(V^T G V)), G = sum x x^T over rows with |x| <= c. One
row changes the utility tr(V^T G V) by tr(V^T x x^T V), which lies in [0, c^2].

- **Replace** (as published, w = eps/(2 c^2)): the utility moves within [-c^2, c^2], a range of 2 c^2, and the
  normalising constant by a factor from the same range, so that densities differ by exp(2 w c^2) = exp(eps) at most.
- **Add/remove** (w = eps/c^2): the utility moves one way only, within [0, c^2]; densities differ by
  exp(w c^2) = exp(eps) at most. The same epsilon buys twice the weight.

So an *exact* draw is (eps, 0)-differentially private. One component is drawn exactly. Several are drawn by a Markov
chain, and what finitely many sweeps guarantee is not known: the certificate then says that nothing is proved.

With ``one_by_one`` the k components are drawn exactly, each in the complement of those before with eps/k (after Amin,
Dick, Kulesza, Munoz & Vassilvitskii, NeurIPS 2019): k private draws of eps/k, each proved, are together (eps, 0).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._display import Facts, Listed
from lessnoise._version import __version__
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Guarantee, Neighbours
from lessnoise.noise import Stream
from lessnoise.pca.bingham import DEFAULT_SWEEPS, MarkovChain, sample_frame, sample_sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from lessnoise._common import Array


SCHEMA = 1
SOURCE = "Chaudhuri, Sarwate & Sinha 2013, if sampled exactly"
SEQUENCE = "lessnoise, after Amin et al. 2019"
_BOUND = "Every row has at most the stated norm, for the stated neighbouring relation."
_COMPOSITION = "The guarantee is for this release alone; several releases about the same individuals must be composed."
_WORDS = "The draws use AES-256 in counter mode, whose output is assumed to be independent and uniform."
_ROUNDING = (
    "Each component is drawn from its exact law and rounded exactly to multiples of 2^-30. So floating point is "
    "covered, for IEEE 754 arithmetic and a mathematical library within 4 units of the last place."
)
_SLACK = 1e-6  # of epsilon: for bases that are orthonormal up to rounding, and sums that are off by 2^-51 of themselves
_LARGEST_TRACE = 2.0**28  # in rows of the largest norm: what is lost by sums up to here is below the slack
_CHAIN = (
    "Several components come from a Markov chain of finitely many sweeps, in floating point. It is not known how near "
    "their law is to the law of the claim, so no guarantee is proved, and delta = 1 says so."
)


@dataclass(frozen=True)
class ComponentsCertificate(Listed):
    """What is proved of components that were sampled directly, without a noisy covariance.

    ``guarantee`` is (epsilon, 0) for exact draws, and (epsilon, 1) for a Markov chain: nothing is proved.
    """

    name: str
    features: int
    components: int
    norm: float
    sweeps: int | None
    guarantee: Guarantee
    claim: Claim
    private: bool
    randomness: str
    assumptions: tuple[str, ...]
    version: str = __version__

    @property
    def claim_holds(self) -> bool | None:
        """True where the draw was exact; None where it is not known."""
        return True if self.guarantee.delta == 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "lessnoise": self.version,
            "mechanism": {
                "name": self.name,
                "features": self.features,
                "components": self.components,
                "row_norm": self.norm,
                "sweeps": self.sweeps,
                "claim": self.claim.to_dict(),
            },
            "guarantee": self.guarantee.to_dict(),
            "claim_holds": self.claim_holds,
            "private": self.private,
            "randomness": self.randomness,
            "assumptions": list(self.assumptions),
        }

    def to_json(self) -> str:
        """Readable JSON; floats survive exactly."""
        return json.dumps(self.to_dict(), indent=2)

    def _facts(self) -> Facts:
        rows = [
            ("guarantee, computed", str(self.guarantee)),
            ("claim", str(self.claim)),
            ("components", f"{self.components:,} of {self.features:,} features"),
            (
                "draws",
                "exact" if self.sweeps is None else f"a Markov chain of {self.sweeps:,} sweeps: nothing is proved",
            ),
        ]
        return Facts(f"Components by {self.name}", rows, good=self.sweeps is None)


@dataclass(frozen=True, eq=False)
class Components:
    """Sampled components, one in each row, and their certificate.

    ``chain``, if there was one, depends on the data beyond what the components reveal: do not publish it.
    """

    value: Array
    certificate: ComponentsCertificate
    chain: MarkovChain | None


def ppca(
    gram: ArrayLike,
    *,
    components: int,
    epsilon: float,
    clip_norm: float,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    sweeps: int = DEFAULT_SWEEPS,
    one_by_one: bool = False,
    rng: np.random.Generator | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Components:
    """Components of sum x x^T (rows of norm at most ``clip_norm``), sampled from the matrix Bingham law.

    Every entry of ``gram`` is that of the sum up to 2^-51 of itself; for whole tables see :class:`PrivatePCA`.

    >>> one = ppca(np.diag([900.0, 10.0, 10.0]), components=1, epsilon=1, clip_norm=1)
    >>> one.value.shape, str(one.certificate.guarantee)
    ((1, 3), '(1, 0)-DP under replace')
    >>> two = ppca(np.diag([900.0, 10.0, 10.0]), components=2, epsilon=1, clip_norm=1, sweeps=20)
    >>> two.certificate.guarantee.delta, two.certificate.claim_holds
    (1.0, None)
    >>> proved = ppca(np.diag([900.0, 10.0, 10.0]), components=2, epsilon=1, clip_norm=1, one_by_one=True)
    >>> str(proved.certificate.guarantee)
    '(1, 0)-DP under replace'
    """
    matrix = validation.real_array(gram, "gram")
    epsilon, norm = validation.epsilon(epsilon), validation.positive("clip_norm", clip_norm, math.inf)
    relation = Neighbours.of(neighbours)
    count = validation.whole_number("components", components)
    if matrix.ndim != 2 or count > len(matrix):
        raise InvalidInput(f"components={count} with gram.shape={matrix.shape}: pass a d x d matrix and at most d.")
    if not abs(float(np.trace(matrix))) <= _LARGEST_TRACE * norm * norm:
        raise InvalidInput(
            f"gram has a trace of {float(np.trace(matrix)):g}, more than 2^28 rows of norm clip_norm={norm:g} have: "
            "its entries are too coarse to protect one row; use a sample of the rows."
        )
    exact = count == 1 or one_by_one
    stream = Stream.of(validation.generator(rng))
    weight = epsilon / (norm * norm * (2.0 if relation is Neighbours.REPLACE else 1.0)) * (1.0 - _SLACK)
    chain = None if exact else sample_frame(matrix, count, stream, sweeps=sweeps, weight=weight, progress=progress)
    frame = sample_sequence(matrix, count, stream, weight=weight / count) if chain is None else chain.frame
    certificate = ComponentsCertificate(
        name="ppca-one-by-one" if one_by_one else "ppca",
        features=len(matrix),
        components=count,
        norm=norm,
        sweeps=None if exact else sweeps,
        guarantee=Guarantee(epsilon, 0.0 if exact else 1.0, relation),
        claim=Claim(epsilon, 0.0, relation, SEQUENCE if one_by_one else SOURCE),
        private=stream.private,
        randomness=stream.description,
        assumptions=(_BOUND, _COMPOSITION, _WORDS, _ROUNDING if exact else _CHAIN),
    )
    return Components(np.ascontiguousarray(frame.T), certificate, chain)

"""What a release can prove about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._display import Shown
from lessnoise._version import CERTIFICATE_SCHEMA, __version__
from lessnoise.doubles import compact
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Guarantee
from lessnoise.mechanism import Mechanism, grid_step
from lessnoise.noise import ChaChaStream
from lessnoise.query import read_asked
from lessnoise.release.coverage import check_covers
from lessnoise.release.form import check_form

if TYPE_CHECKING:
    from lessnoise.noise import Stream
    from lessnoise.query import Asked
    from lessnoise.release.signer import Signer

KIND = "release"
_RECOMPUTED = 1e-6  # relative: another machine's mathematical library, another version's grid of a curve
_SENSITIVITY = (
    "Neighbours, by the stated relation, change the value by no more than the sensitivity that the caller stated."
)
_CHANGES = "One individual changes the value only as the set of changes says; the caller or the query stated this set."
_QUERY = (
    "What one unit can change follows from the query that is stated here. The caller stated that one individual is "
    "one such unit."
)
_COMPOSITION = "The guarantee is for this release alone; several releases about the same individuals must be composed."
_WORDS = (
    "The noise is drawn with AES-256 in counter mode, which is assumed to be an ideal cipher under a secret key. What "
    "such a cipher adds to delta is delta_numeric, and it is included."
)
_DEVICE_WORDS = (
    "The noise is drawn with ChaCha20, which is assumed to be a random function under a secret key. delta_numeric, "
    "which AES-256 would add to delta, is included anyway."
)


def assumptions(mechanism: Mechanism, asked: Asked | None = None, stream: Stream | None = None) -> tuple[str, ...]:
    """What the guarantee rests on: with a query, not on a sensitivity that the caller stated.

    Integer noise is drawn and added in integers, so rounding is no concern there.
    """
    stated = _SENSITIVITY if mechanism.changes is None else _CHANGES
    words = _DEVICE_WORDS if isinstance(stream, ChaChaStream) else _WORDS
    shared = (stated if asked is None else _QUERY, _COMPOSITION, words)
    return shared if mechanism.law.integer else (*shared, mechanism.law.rounding)


@dataclass(frozen=True)
class Certificate(Shown):
    """The mechanism, its exact guarantee at the epsilon it was built for, and where the randomness came from.

    ``guarantee`` is computed, never copied from the mechanism's claim: its delta is the upper end of ``exact``, the
    delta of the real-valued noise, plus ``delta_numeric``, what the finite machine adds, rounded up. ``claim_holds``
    compares the claim with ``exact``. The released numbers are multiples of ``grid``, if there is one. A release made
    with a caller's generator is marked ``private=False``. ``value_sha256`` is there once the noisy value is in a file:
    the SHA-256 of that file. ``asked`` is there if an :class:`~lessnoise.Answer` was released: the query, of which the
    set of changes follows.
    """

    mechanism: Mechanism
    guarantee: Guarantee
    exact: Bracket
    delta_numeric: float
    grid: float | None
    claim_holds: bool | None
    private: bool
    randomness: str
    assumptions: tuple[str, ...]
    version: str = __version__
    value_sha256: str | None = None
    asked: Asked | None = None

    def __str__(self) -> str:
        """What a reader asks first; ``to_json()`` has the rest.

        >>> from lessnoise.mechanism import laplace
        >>> print(laplace(epsilon=1, sensitivity=1, shape=3).release([1.0, 2.0, 3.0]).certificate)
        (1, ...e-32)-DP under add/remove, by the mechanism laplace on 3 numbers
        """
        size = self.mechanism.dimension
        words = f"{self.guarantee}, by the mechanism {self.mechanism.name} on {size} number{'s' if size > 1 else ''}"
        return words if self.private else f"{words}; from a seeded generator, and so not private"

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        stream: Stream,
        dtype: np.dtype[Any] | type = np.float64,
        asked: Asked | None = None,
    ) -> Certificate:
        """Compute the certificate of a mechanism; a mechanism without a claim is certified at epsilon = 1."""
        if mechanism.claim is None:
            exact, holds = mechanism.delta(1.0), None
        else:
            verdict = mechanism.check()
            exact, holds = verdict.exact, verdict.holds
        epsilon = 1.0 if mechanism.claim is None else mechanism.claim.epsilon
        numeric = noise_engine.machine_delta(epsilon, mechanism.machine_distance)
        return cls(
            mechanism,
            Guarantee(epsilon, noise_engine.total_delta(exact.upper, numeric), mechanism.neighbours),
            exact,
            numeric,
            grid_step(mechanism.law, mechanism.shape, dtype),
            holds,
            stream.private,
            stream.description,
            assumptions(mechanism, asked, stream),
            asked=asked,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, in the form of version 2: ``lessnoise verify`` has its JSON Schema."""
        return {
            "schema": CERTIFICATE_SCHEMA,
            "kind": KIND,
            "lessnoise": self.version,
            "mechanism": compact(self.mechanism.to_dict()),
            "guarantee": self.guarantee.to_dict(),
            "exact_delta": self.exact.to_dict(),
            "delta_numeric": self.delta_numeric,
            "grid": self.grid,
            "claim_holds": self.claim_holds,
            "private": self.private,
            "randomness": self.randomness,
            "assumptions": list(self.assumptions),
            "value_sha256": self.value_sha256,
            **({} if self.asked is None else {"query": self.asked.to_dict()}),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Certificate:
        """The inverse of :meth:`to_dict`; what it guarantees is computed again, and one that promises more is refused.

        Fields of other names are left alone. A histogram's certificate of an older version has the query among them,
        "query" being its name alone.
        """
        needed = (
            *("lessnoise", "mechanism", "guarantee", "exact_delta", "delta_numeric", "grid", "claim_holds"),
            *("private", "randomness", "assumptions"),
        )
        given = validation.fields(check_form(values, KIND), needed, "certificate", optional=None)
        validation.choice("claim_holds", given["claim_holds"], (True, False, None))
        validation.choice("private", given["private"], (True, False))
        stated = cls(
            Mechanism.from_dict(given["mechanism"]),
            Guarantee.from_dict(given["guarantee"]),
            Bracket.from_dict(given["exact_delta"]),
            validation.nonnegative_epsilon(given["delta_numeric"], "delta_numeric"),
            None if given["grid"] is None else validation.positive("grid", given["grid"]),
            given["claim_holds"],
            given["private"],
            validation.text("randomness", given["randomness"]),
            tuple(
                validation.text("assumption", each) for each in validation.entries("assumptions", given["assumptions"])
            ),
            validation.text("lessnoise", given["lessnoise"]),
            given.get("value_sha256") and validation.text("value_sha256", given["value_sha256"]),
            None if isinstance(given.get("query"), (str, type(None))) else read_asked(given["query"]),
        )
        stated._refuse_contradictions()
        return stated

    def _refuse_contradictions(self) -> None:
        """The mechanism is here in full, and the query, so that nobody has to believe what is said of them."""
        if self.asked is None and _QUERY in self.assumptions:
            raise InvalidInput(
                "the assumptions speak of a query that is not stated: the certificate was changed; restore it."
            )
        if self.asked is not None:
            check_covers(self.mechanism, self.asked)
        truth = Certificate.of(self.mechanism, noise_engine.Stream.secure())
        same = ("epsilon", "neighbours")
        if any(getattr(self.guarantee, name) != getattr(truth.guarantee, name) for name in same):
            raise InvalidInput(
                f"guarantee={self.guarantee} is not at the epsilon={truth.guarantee.epsilon:g} and the neighbours of "
                "its mechanism: the certificate was changed; restore it."
            )
        least = max(truth.guarantee.delta, min(self.exact.upper + self.delta_numeric, 1.0)) * (1.0 - _RECOMPUTED)
        if self.guarantee.delta < least or self.exact.upper < truth.exact.lower or self.exact.lower > truth.exact.upper:
            raise InvalidInput(
                f"guarantee={self.guarantee} contradicts exact_delta={self.exact} or the {truth.guarantee} that its "
                "mechanism is computed to give: the certificate was changed; restore it."
            )
        if (self.claim_holds is None) != (truth.claim_holds is None) or (self.claim_holds and not truth.claim_holds):
            raise InvalidInput(
                f"claim_holds={self.claim_holds} is computed to be {truth.claim_holds}: the certificate was changed; "
                "restore it."
            )

    def to_json(self, signer: Signer | None = None) -> str:
        """Readable JSON; floats survive exactly."""
        values = self.to_dict()
        return json.dumps(values if signer is None else signer.signed(values), indent=2)

"""What a certificate states, inequality by inequality, and which of it is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, Final

from flint import arb

from lessnoise_verify import laws, values
from lessnoise_verify.balls import ball, ends, probability_ends, refined, shown
from lessnoise_verify.changes import RELATIONS, read_changes
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.laws import Case
from lessnoise_verify.laws.bodies import BODIES, largest_size
from lessnoise_verify.queries import NORMS, WHOLE, check_query

if TYPE_CHECKING:
    from collections.abc import Callable

SECURE: Final = ("AES-256-CTR keyed by the operating system", "ChaCha20 keyed by the operating system")
ASSUMED: Final = (
    "Nobody can tell the output of AES-256 in counter mode, or of ChaCha20, from random bits, and only the operating "
    "system's generator knew the key.",
    "The software drew the noise as it says, and sampling is exact in IEEE 754 arithmetic (lessnoise selftest checks "
    "this).",
    "Nothing else was released about the same individuals. If there are several releases, they must be composed.",
)
STATED: Final = "One individual changes the value by no more than is stated; the certificate alone cannot show this."
OF_WHOLE: Final = "The value consists of whole numbers, as the noise does."
_ROUNDED: Final = Fraction(1, 10**9)  # a norm may be rounded up
OF_QUERY: Final = "The value is the answer to the stated query, and one individual is one unit as the query defines it."


@dataclass
class Proof:
    """The statements that are proved so far, and what they rest on."""

    proved: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stated:
    """A guarantee, as it is written down."""

    epsilon: Fraction
    delta: Fraction
    relation: str

    @classmethod
    def read(cls, given: Fields, *more: str) -> Stated:
        """From its fields; ``more`` are texts that may be there, too."""
        epsilon, delta = given.number("epsilon", 0.0), given.number("delta", 0.0, 1.0)
        found = cls(epsilon, delta, given.choice("neighbours", *RELATIONS))
        for name in more:
            given.text(name)
        given.end()
        return found

    def __str__(self) -> str:
        return f"({float(self.epsilon):.12g}, {float(self.delta):.12g})-DP under {self.relation}"


@dataclass(frozen=True)
class Mechanism:
    """Noise, what it is added to, and what a source claims of it."""

    noise: Fields
    case: Case
    claim: Stated | None

    @classmethod
    def read(cls, given: Fields) -> Mechanism:
        """From its description."""
        given.whole("schema", 1, 1) if "schema" in given else given.take("schema", None)
        given.text("name")
        if given.take("design", None) is not None:
            _read_words(given.fields("design"))
        shape = read_shape(given)
        relation = given.choice("neighbours", *RELATIONS)
        changes = read_changes(given.fields("changes"), shape, relation) if "changes" in given else None
        given.take("changes", None)
        case = Case(shape, given.positive("sensitivity"), relation, changes)
        claim = Stated.read(given.fields("claim"), "source") if "claim" in given else given.take("claim", None)
        if claim is not None and claim.relation != relation:
            raise Refuted(f"the claim is for {claim.relation}, but the mechanism is for {relation}.")
        noise = given.fields("noise")
        given.end()
        return cls(noise, case, claim)

    def delta(self, epsilon: Fraction, bits: int = 40) -> arb:
        """An enclosure of the smallest delta at an epsilon."""
        found = laws.delta(self.noise, self.case, epsilon, bits)
        self.noise.end()
        return found

    def machine_share(self, epsilon: Fraction) -> arb:
        """What a cipher instead of random words adds to delta: (1 + e^epsilon) (2 n + 2048)^2 2^-129 for n draws."""
        drawn = laws.values_drawn(self.noise, self.case)
        share = (1 + ball(epsilon).exp()) * ball(Fraction((2 * drawn + 2048) ** 2, 2**129))
        return share.min(arb(1))


def _read_words(design: Fields) -> None:
    """How the search chose the law: words, on which nothing rests."""
    for name in ("objective", "choice", *(["note"] if "note" in design else [])):
        design.text(name)
    design.whole("releases") if "releases" in design else design.take("releases", None)
    for each in design.items("compared", 1000) if "compared" in design else design.take("compared", []):
        if not (isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)):
            raise Unreadable(f"{design.name}.compared is not a list of candidates.")
    design.end()


def read_shape(given: Fields) -> tuple[int, ...]:
    """The shape of an array: a list of whole numbers from 1 on."""
    sizes = given.items("shape", 64)
    inside = Fields({str(place): size for place, size in enumerate(sizes)}, f"{given.name}.shape")
    shape = tuple(inside.whole(str(place)) for place in range(len(sizes)))
    if math.prod(shape) > 10**15:
        raise Unreadable(f"{given.name}.shape has more than 10^15 entries.")
    return shape


def decide(proof: Proof, words: str, compute: Callable[[int], arb], low: Fraction, high: Fraction) -> arb:
    """Prove low <= x <= high for a number that can be enclosed ever more narrowly; the upper end is what counts."""
    found = compute(40)
    for bits in (60, 100):
        below, above = probability_ends(found)
        if (above <= high and below >= low) or below > high or above < low:
            break
        found = compute(bits)
    below, above = probability_ends(found)
    if below > high:
        raise Refuted(f"{words} is proved to be {shown(found)}, above the stated {float(high):.12g}.")
    if above < low:
        raise Refuted(f"{words} is proved to be {shown(found)}, below the stated {float(low):.12g}.")
    if above > high:
        raise NotCovered(
            f"{words} is proved to be {shown(found)}, which does not decide whether it is at most the stated "
            f"{float(high):.12g}."
        )
    proof.proved.append(f"{words} is {shown(found)}, which is at most the stated {float(high):.12g}")
    if below < low:
        proof.skipped.append(f"whether {words} is at least the stated {float(low):.12g}")
    return found


def check_mechanism(given: Fields, proof: Proof) -> None:
    """The description of a mechanism: what its source claims of it."""
    mechanism = Mechanism.read(given)
    claim = mechanism.claim
    if claim is None:
        raise NotCovered("the description of this mechanism states no claim, so there is nothing to prove.")
    words = f"delta at epsilon = {float(claim.epsilon):.12g}"
    decide(proof, words, lambda bits: mechanism.delta(claim.epsilon, bits), Fraction(0), claim.delta)
    proof.proved.append(f"the noise is {claim}, if a perfect machine draws it")
    proof.assumed += stated_words(mechanism)


def stated_words(mechanism: Mechanism) -> list[str]:
    """What is believed of the value that the noise is added to."""
    noise = mechanism.noise
    inner = noise.fields("noise") if noise.text("kind") == "measured" else noise
    return [STATED, OF_WHOLE] if inner.text("kind") in WHOLE else [STATED]


def read_bracket(given: Fields) -> tuple[Fraction, Fraction, Fraction]:
    """The stated ends of delta, and what the machine adds to it."""
    bracket = given.fields("exact_delta")
    low, high = bracket.number("lower", 0.0, 1.0), bracket.number("upper", 0.0, 1.0)
    bracket.end()
    return low, high, given.number("delta_numeric", 0.0)


def check_total(stated: Stated, delta: Fraction, high: Fraction, share: Fraction, numeric: Fraction) -> None:
    """The machine's share is at most what is stated, and with delta, proved and stated, within the guarantee."""
    if share > numeric:
        raise Refuted(f"a real machine adds {float(share):.12g} to delta, more than the stated {float(numeric):.12g}.")
    if min(max(delta + share, high + numeric), Fraction(1)) > stated.delta:
        raise Refuted(f"delta, with what a real machine adds to it, is more than the guarantee says: {stated}.")


def check_release(given: Fields, proof: Proof, value: BinaryIO | None) -> Mechanism:
    """The certificate of one release."""
    given.text("lessnoise")
    mechanism = Mechanism.read(given.fields("mechanism"))
    stated = Stated.read(given.fields("guarantee"))
    low, high, numeric = read_bracket(given)
    if stated.relation != mechanism.case.relation:
        raise Refuted(f"the guarantee is for {stated.relation}, but the mechanism is for {mechanism.case.relation}.")
    _check_private(given)
    check_sensitivity(mechanism, proof, _query(given))
    words = f"delta at epsilon = {float(stated.epsilon):.12g}"
    found = decide(proof, words, lambda bits: mechanism.delta(stated.epsilon, bits), low, high)
    share = refined(lambda: mechanism.machine_share(stated.epsilon), 80)
    check_total(stated, ends(found)[1], high, ends(share)[1], numeric)
    proof.proved.append(f"a release is {stated}, with the {shown(share)} that a real machine adds to delta")
    _check_claim(mechanism, given.take("claim_holds"), proof)
    _check_value(given, mechanism, proof, value)
    given.items("assumptions", 100)
    proof.assumed += ASSUMED
    return mechanism


def _query(given: Fields) -> Fields | None:
    """What was asked; files of version 1 may have its name alone, and words about it in other fields."""
    if isinstance(given.take("query", None), str):
        for name in ("axes", "unit", "engine", "rules"):
            given.take(name, None)
        return None
    return given.fields("query") if "query" in given else None


def _check_private(given: Fields) -> None:
    if not given.truth("private"):
        raise Refuted("the noise came from a seeded generator, as the certificate says itself: nothing is guaranteed.")
    if given.text("randomness") not in SECURE:
        raise NotCovered("the randomness is not that of the operating system's generator.")


def _check_claim(mechanism: Mechanism, holds: object, proof: Proof) -> None:
    claim = mechanism.claim
    if not isinstance(holds, bool | None) or (claim is None) != (holds is None):
        raise Refuted("claim_holds and the claim do not fit together.")
    if claim is None:
        return
    words = f"the claim {claim}"
    below, above = ends(mechanism.delta(claim.epsilon))
    if holds and below > claim.delta:
        raise Refuted(f"{words} is false: delta is at least {float(below):.12g}.")
    if not holds and above <= claim.delta:
        raise Refuted(f"{words} is true, but the certificate says that it is not.")
    if (above <= claim.delta) == holds and (holds or below > claim.delta):
        proof.proved.append(f"{words} {'holds' if holds else f'is false: delta is at least {float(below):.6g}'}")
    else:
        proof.skipped.append(f"{words}, as delta is not known closely enough to decide it")


def check_sensitivity(mechanism: Mechanism, proof: Proof, query: Fields | None) -> None:
    """What one individual can change: as stated, or as it follows from a query; the sensitivity is that of the set."""
    case, kind = mechanism.case, mechanism.noise.text("kind")
    if case.changes is not None:
        square = case.changes.squared_norm(NORMS[kind]) if kind in NORMS else None
        if kind in BODIES:
            square = largest_size(mechanism.noise, case) ** 2
        twice = 4 if kind in ("hierarchy", "measured") else 1  # of rows that are moved: twice as much as leaves
        if square is not None and not square <= case.sensitivity**2 <= square * twice * (1 + _ROUNDED):
            raise Refuted(f"sensitivity = {float(case.sensitivity):.12g} is not the largest norm of the changes.")
    if query is None:
        proof.assumed += stated_words(mechanism)
        return
    check_query(query, mechanism.noise, case)
    proof.proved.append("the guarantee covers every change that one unit can make to the answer of the stated query")
    proof.assumed.append(OF_QUERY)


def _check_value(given: Fields, mechanism: Mechanism, proof: Proof, value: BinaryIO | None) -> None:
    grid = given.positive("grid") if "grid" in given else given.take("grid")
    if grid is not None and (grid.numerator & (grid.numerator - 1) or grid.denominator & (grid.denominator - 1)):
        raise Refuted(f"grid = {float(grid):g} is not a power of two.")
    digest = given.text("value_sha256") if "value_sha256" in given else given.take("value_sha256", None)
    if value is None:
        if digest is not None:
            proof.skipped.append("the released value, because its file was not given")
        return
    if digest is None:
        raise NotCovered("the certificate states no hash of a value, so the file that you give cannot be checked.")
    if values.digest(value) != digest:
        raise Refuted("the file is not the value that the certificate was written for: its SHA-256 differs.")
    proof.proved.append("the file is the value that the certificate was written for: its SHA-256 is the stated one")
    if values.check(value, mechanism.case.shape, grid):
        of_grid = "" if grid is None else f", and every entry is a multiple of {float(grid):g}"
        proof.proved.append(f"the value has the stated shape{of_grid}")
    else:
        proof.skipped.append("the entries of the value, because there are too many of them")

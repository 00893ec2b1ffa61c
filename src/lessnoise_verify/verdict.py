"""The whole check of a file: what is proved, what it rests on, and one word for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lessnoise_verify import document
from lessnoise_verify.bounds import check_bound
from lessnoise_verify.certificate import Proof, check_release
from lessnoise_verify.document import Fields, NotCovered, NotProved, Refuted, Unreadable

CODES: Final = {"proved": 0, "refuted": 1, "unreadable": 2, "not covered": 3}
_OF: Final = {Refuted: "refuted", Unreadable: "unreadable", NotCovered: "not covered"}


@dataclass(frozen=True)
class Verdict:
    """One of four words, the reason if it is not "proved", and the statements that were proved, assumed or left out."""

    word: str
    reason: str = ""
    proved: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code of the command line: 0 proved, 1 refuted, 2 unreadable, 3 not covered."""
        return CODES[self.word]

    def __str__(self) -> str:
        lines = [f"{self.word}: {self.reason}" if self.reason else self.word]
        for word, statements in (("proved", self.proved), ("assumed", self.assumed), ("not checked", self.skipped)):
            lines += [f"  {word}: {statement}" for statement in statements]
        return "\n".join(lines)


def verify(certificate: bytes, value: bytes | None = None, public_key: bytes | None = None) -> Verdict:
    """Check the content of a certificate's file, with the released value's file and a public key if there are any.

    >>> verify(b"[]").word
    'unreadable'
    """
    proof = Proof()
    try:
        _check(document.load(certificate), proof, value)
    except NotProved as error:
        return Verdict(_OF[type(error)], str(error), tuple(proof.proved), (), tuple(proof.skipped))
    return Verdict("proved", "", tuple(proof.proved), tuple(dict.fromkeys(proof.assumed)), tuple(proof.skipped))


def _check(given: Fields, proof: Proof, value: bytes | None) -> None:
    if given.take("schema") not in (1, 2) or type(given.take("schema")) is not int:
        raise Unreadable("the schema is neither 1 nor 2.")
    if given.take("kind", None) == "lower-bound":
        check_bound(given, proof)
    else:
        check_release(given, proof, value)
    given.end()

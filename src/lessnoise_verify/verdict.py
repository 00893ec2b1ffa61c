"""The whole check of a file: what is proved, what it rests on, and one word for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from lessnoise_verify import document
from lessnoise_verify.balls import probability_ends
from lessnoise_verify.bounds import check_bound
from lessnoise_verify.certificate import Mechanism, Proof, check_mechanism, check_release
from lessnoise_verify.document import Fields, NotCovered, NotProved, Refuted, Unreadable
from lessnoise_verify.queries import texts
from lessnoise_verify.signature import check_signature
from lessnoise_verify.tables import check_composition, check_table
from lessnoise_verify.values import digest

if TYPE_CHECKING:
    from collections.abc import Callable

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

    def _repr_html_(self) -> str:
        """A list for notebooks; every text from the file is escaped."""
        title = f"{self.word}: {self.reason}" if self.reason else self.word
        named = (("proved", self.proved), ("assumed", self.assumed), ("not checked", self.skipped))
        items = "".join(f"<li>{word}: {escape(text)}</li>" for word, texts in named for text in texts)
        return f"<div><strong>{escape(title)}</strong><ul>{items}</ul></div>"

    def __str__(self) -> str:
        lines = [f"{self.word}: {self.reason}" if self.reason else self.word]
        for word, statements in (("proved", self.proved), ("assumed", self.assumed), ("not checked", self.skipped)):
            lines += [f"  {word}: {statement}" for statement in statements]
        return "\n".join(lines)


def verify(
    certificate: bytes,
    value: BinaryIO | None = None,
    public_key: bytes | None = None,
    folder: Path | None = None,
) -> Verdict:
    """Check the content of a certificate's file.

    ``value``: the released value's open file; ``public_key``: the signer's, in PEM form; ``folder``: where the files
    lie whose hashes the certificate states.

    >>> verify(b"[]").word
    'unreadable'
    """
    proof = Proof()
    try:
        given = document.load(certificate)
        if public_key is not None:
            check_signature(given, public_key)
            proof.proved.append("the holder of the key signed exactly this certificate")
        elif given.take("signature", None) is not None:
            proof.skipped.append("the signature, because no public key was given")
        kind = _check(given, proof, value)
        _check_files(given, proof, folder, value if kind == "table" else None)
        given.end()
    except NotProved as error:
        word = next(word for kind, word in _OF.items() if isinstance(error, kind))
        return Verdict(word, str(error), tuple(proof.proved), (), tuple(proof.skipped))
    return Verdict("proved", "", tuple(proof.proved), tuple(dict.fromkeys(proof.assumed)), tuple(proof.skipped))


def enclosed_delta(mechanism: dict[str, Any], epsilon: float, digits: int = 12) -> tuple[Fraction, Fraction]:
    """The ends of an enclosure of delta, for the description of a mechanism; digits are those that are wanted.

    >>> laplace = {"name": "", "noise": {"kind": "laplace", "scale": 1.0}, "shape": [1], "claim": None}
    >>> [float(end) for end in enclosed_delta({**laplace, "sensitivity": 1.0, "neighbours": "add/remove"}, 1.0)]
    [0.0, 0.0]
    """
    found = Mechanism.read(Fields(mechanism, "mechanism")).delta(Fraction(epsilon), math.ceil(3.33 * digits) + 2)
    return probability_ends(found)


def _check(given: Fields, proof: Proof, value: BinaryIO | None) -> str:
    """By the kind of document, which is returned: files of version 1 do not state it, and tables of 1 no version."""
    kind = "table" if "releases" in given else "mechanism" if "noise" in given else "release"
    schema = given.take("schema", 1) if kind == "table" else given.take("schema")
    if type(schema) is not int or schema not in (1, 2):
        raise Unreadable("the schema is neither 1 nor 2.")
    if schema == 2 and kind != "mechanism":
        kind = given.choice("kind", *_KINDS)
    if value is not None and kind not in ("release", "table"):
        raise NotCovered(f"a {kind} states no hash of a file to check: leave the second argument out.")
    _KINDS[kind](given, proof, value)
    return kind


def _release(given: Fields, proof: Proof, value: BinaryIO | None) -> None:
    check_release(given, proof, value)
    if "postprocess" in given:  # what was done to the value after its release
        texts(given, "postprocess")


_KINDS: Final[dict[str, Callable[[Fields, Proof, BinaryIO | None], object]]] = {
    "release": _release,
    "table": lambda given, proof, value: check_table(given, proof),
    "composition": lambda given, proof, value: check_composition(given, proof),
    "lower-bound": lambda given, proof, value: check_bound(given, proof),
    "mechanism": lambda given, proof, value: check_mechanism(given, proof),
}


def _check_files(given: Fields, proof: Proof, folder: Path | None, value: BinaryIO | None) -> None:
    """Files beside the certificate are those that it names, and a value that is no array is one of them."""
    if "sha256" not in given:
        if value is not None:
            raise NotCovered("this certificate states no hash of a file to check: leave the second argument out.")
        return
    hashes = given.fields("sha256")
    own = None if value is None else digest(value)
    if own is not None:
        if own not in hashes.values.values():
            raise Refuted("the file is not one of those that the certificate was written for.")
        proof.proved.append("the file is one of those that the certificate was written for: its SHA-256 is stated")
    for name in list(hashes.values):
        expected, path = hashes.text(name), Path(name)
        if path.name != name:
            raise Unreadable(f"{name[:60]!r} is not the name of a file.")
        if folder is None:
            continue
        try:
            with (folder / name).open("rb") as file:
                same = digest(file) == expected
        except (OSError, ValueError):  # no such file, or no name that one may have
            raise Refuted(f"the file {name[:60]!r} is not beside the certificate.") from None
        if not same:
            raise Refuted(f"the file {name[:60]!r} is not the one that the certificate was written for.")
        proof.proved.append(f"the file {name[:60]!r} is the one that the certificate was written for")
    if folder is None:
        others = "" if own is None else "other "
        proof.skipped.append(f"the {others}files beside the certificate, because their folder was not given")

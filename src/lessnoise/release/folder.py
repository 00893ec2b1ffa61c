"""A folder of results: tables, a picture, and the certificate with the SHA-256 of these files; all of them or none."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from lessnoise import files, validation
from lessnoise._display import to_png
from lessnoise.engines import require
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from lessnoise.release.payment import Payment
    from lessnoise.release.signer import Signer

CERTIFICATE = "certificate.json"


@dataclass(frozen=True)
class CertifiedFolder:
    """Where results go, with a picture and a certificate; what could not be written later is refused at once.

    A class below it says what the files are called, which formats there are, and what a file of each holds.
    """

    path: Path
    formats: Sequence[str] = ("parquet",)
    force: bool = False
    signer: Signer | None = None

    stem: ClassVar[str]
    known: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        for form in self.formats:
            validation.choice("format", form, self.known)
        if "parquet" in self.formats:
            require("pyarrow.parquet", "data")
        files.check_folder(self.path, [path.name for path in self.outputs], self.force)

    @property
    def outputs(self) -> list[Path]:
        """The files."""
        names = (*(f"{self.stem}.{form}" for form in self.formats), f"{self.stem}.png", CERTIFICATE)
        return [self.path / name for name in names]

    def file(self, result: Any, form: str) -> bytes:  # noqa: ANN401
        """What a file of this format holds."""
        raise NotImplementedError

    def certificate(self, result: Any) -> dict[str, Any]:  # noqa: ANN401
        """What the certificate says, ready for JSON."""
        raise NotImplementedError

    def contents(self, result: Any) -> dict[str, bytes]:  # noqa: ANN401
        """What the files hold; the certificate, which vouches for the rest, comes last."""
        try:
            made = {f"{self.stem}.{form}": self.file(result, form) for form in self.formats}
            made[f"{self.stem}.png"] = to_png(result)
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"name={error.object!r} is not text that a file can hold: rename the column or key."
            ) from None
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in made.items()}
        told = {**self.certificate(result), "sha256": hashes}
        told = told if self.signer is None else self.signer.signed(told)
        return made | {CERTIFICATE: (json.dumps(told, indent=2) + "\n").encode()}

    @contextlib.contextmanager
    def reserved(self, trial: Mapping[str, bytes]) -> Iterator[files.Staged]:
        """The folder and its files, made and with room on the disk: what cannot be written shows before the payment."""
        # Numbers are at most half as long again as those of a trial, and pictures at most as hard to compress.
        sizes = {self.path / name: 2 * len(content) + (1 << 14) for name, content in trial.items()}
        with files.made_folder(self.path), files.staged(sizes, self.force) as staged:
            yield staged

    def write(self, made: Mapping[str, bytes], staged: files.Staged, payment: Payment) -> list[Path]:
        """Write all files and give them their names."""
        for name, content in made.items():
            staged.write(self.path / name, files.writer(content))
        payment.keep(staged)
        staged.place()
        return list(staged.temporary)


def verified(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What the certificate of a folder says, if every file in it is the one that was saved with it."""
    folder = Path(folder)
    place = folder / CERTIFICATE
    if not place.is_file():
        raise InvalidInput(f"folder={folder} has no {CERTIFICATE}: pass a folder that save wrote.")
    values = validation.json_object(place.read_bytes(), "certificate")
    known = values.get("sha256")
    if not isinstance(known, dict) or not known:
        raise InvalidInput(
            f"{place} has no sha256 of the files beside it, as older versions wrote it: nothing to verify."
        )
    for name, expected in known.items():
        path = folder / PurePath(name).name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise InvalidInput(
                f"file={path} is not the one that {CERTIFICATE} was written for, as its SHA-256 tells: take all "
                "files from one release."
            )
    return values

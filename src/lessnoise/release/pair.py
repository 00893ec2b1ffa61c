"""A release as two files that belong together: the noisy array and its certificate."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from lessnoise import files, npy, validation
from lessnoise.errors import InvalidInput
from lessnoise.release.certificate import Certificate
from lessnoise.release.payment import Payment
from lessnoise.release.tensors import as_array, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from lessnoise.ledger import Ledger
    from lessnoise.mechanism import Mechanism
    from lessnoise.query import Asked
    from lessnoise.release.release import Release
    from lessnoise.release.signer import Signer

_PART = 1 << 20  # entries that are written at a time


def certificate_path(target: Path) -> Path:
    """OUT.npy -> OUT.npy.certificate.json."""
    return target.with_name(target.name + ".certificate.json")


def check_writable(target: Path, force: bool) -> None:
    """Refuse early, before any noise is drawn."""
    files.check_free((target, certificate_path(target)), force)


@contextlib.contextmanager
def reserved(mechanism: Mechanism, target: Path, force: bool, asked: Asked | None = None) -> Iterator[files.Staged]:
    """Both files of a release, made and with room on the disk: what cannot be written shows before the payment."""
    header = _header(mechanism.shape, np.dtype(np.float64))
    known = {"mechanism": mechanism.to_dict(), "query": None if asked is None else asked.to_dict()}
    text = json.dumps(known, indent=2)
    sizes = {target: len(header) + 8 * mechanism.dimension, certificate_path(target): len(text) + (1 << 14)}
    with files.staged(sizes, force) as staged:
        yield staged


def write_staged(
    release: Release, target: Path, staged: files.Staged, ledger: Ledger | None, signer: Signer | None = None
) -> Release:
    """Write a release into its files and place them; returns it with the SHA-256 in its certificate."""
    with Payment(ledger, release.receipt, release) as payment:
        value = as_array(release.value) if is_tensor(release.value) else release.value
        flat = np.ascontiguousarray(value).reshape(-1)
        parts = (flat[start : start + _PART] for start in range(0, flat.size, _PART))
        digest = write_array(staged, target, value.shape, flat.dtype, lambda write: [*map(write, parts)])
        certificate = dataclasses.replace(release.certificate, value_sha256=digest)
        place(certificate, target, staged, payment, signer)
    return dataclasses.replace(release, certificate=certificate)


def write_array(
    staged: files.Staged,
    target: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    parts: Callable[[Callable[[NDArray[Any]], None]], object],
) -> str:
    """Write an array as .npy, in C order and little-endian, from its parts; returns the SHA-256 of the file."""
    digest, little = hashlib.sha256(), dtype.newbyteorder("<")

    def write(file: BinaryIO) -> None:
        def take(part: NDArray[Any] | bytes) -> None:
            content = part if isinstance(part, bytes) else part.astype(little, copy=False).data.cast("B")
            file.write(content)
            digest.update(content)

        take(_header(shape, little))
        parts(take)

    staged.write(target, write)
    return digest.hexdigest()


def place(
    certificate: Certificate, target: Path, staged: files.Staged, payment: Payment, signer: Signer | None = None
) -> None:
    """Write the certificate of an array that is written, and give both files their names."""
    staged.write(certificate_path(target), files.writer((certificate.to_json(signer) + "\n").encode()))
    payment.keep(staged)
    staged.place()


def read_release(path: Path) -> tuple[NDArray[Any], Certificate]:
    """Read a noisy array and its certificate; refuse a pair that does not belong together."""
    beside = certificate_path(path)
    if not beside.is_file():
        raise InvalidInput(f"input={path} has no certificate: put {beside.name} beside it, or read it with numpy.load.")
    certificate = Certificate.from_dict(validation.json_object(beside.read_bytes(), "certificate"))
    if certificate.value_sha256 is None:
        raise InvalidInput(
            f"input={path} is not bound to its certificate, which lacks value_sha256, as older versions wrote it: read "
            "it with numpy.load, if you know that the two belong together."
        )
    if not path.is_file():
        raise InvalidInput(f"input={path} does not exist: pass the path of an existing .npy file.")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != certificate.value_sha256:
            raise InvalidInput(
                f"input={path} is not the value that {beside.name} was written for: its SHA-256 differs from "
                "value_sha256; take both files from one release."
            )
        file.seek(0)
        return npy.load_from(file, path), certificate


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """The first bytes of a .npy file of version 1.0."""
    buffer = io.BytesIO()
    values = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, values)
    return buffer.getvalue()

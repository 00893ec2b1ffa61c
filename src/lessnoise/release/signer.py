"""Signing certificates, so that others can tell who wrote them and that nobody changed them: Ed25519."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_LARGEST = 1 << 14  # bytes of a key's file


@dataclass(frozen=True, repr=False, eq=False)
class Signer:
    """Signs certificates with an Ed25519 key, which ``openssl genpkey -algorithm ed25519`` makes.

    >>> import lessnoise as ln
    >>> signer = ln.Signer.new()
    >>> made = ln.laplace(epsilon=1, sensitivity=1, shape=2).release([1.0, 2.0])
    >>> signed = signer.signed(made.certificate.to_dict())
    >>> signed["signature"]["algorithm"], signer.public_key.splitlines()[0]
    ('Ed25519', '-----BEGIN PUBLIC KEY-----')
    """

    key: Ed25519PrivateKey

    @classmethod
    def new(cls) -> Self:
        """With a fresh key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """With the private key in a PEM file, which must not be encrypted."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        place = Path(path)
        try:
            with place.open("rb") as file:
                content = file.read(_LARGEST)
        except OSError as error:
            raise InvalidInput(f"key={place} cannot be read ({error.strerror}): pass the path of a PEM file.") from None
        try:
            key = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InvalidInput(
                f"key={place} is not a private key without a password: make one with lessnoise.Signer.new().write(KEY)."
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidInput(f"key={place} is not an Ed25519 key: make one with openssl genpkey -algorithm ed25519.")
        return cls(key)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the private key to a new file that only its owner may read, and the public key to ``path`` + ".pub"."""
        place = Path(path)
        for file, content, mode in (
            (place, self.private_key, 0o600),
            (place.with_name(place.name + ".pub"), self.public_key, 0o644),
        ):
            try:
                opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            except FileExistsError:
                raise InvalidInput(f"path={file} exists: a key is not overwritten; choose another name.") from None
            with os.fdopen(opened, "w", encoding="ascii") as key:
                key.write(content)

    @property
    def public_key(self) -> str:
        """The public key in PEM form, for ``lessnoise verify --public-key``."""
        from cryptography.hazmat.primitives import serialization

        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, form).decode("ascii")

    @property
    def private_key(self) -> str:
        """The private key in PEM form: keep it to yourself."""
        from cryptography.hazmat.primitives import serialization

        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, form, plain).decode("ascii")

    def signed(self, certificate: dict[str, Any]) -> dict[str, Any]:
        """The certificate with a signature of all the rest of it, as JSON in ASCII with sorted names and no spaces."""
        unsigned = {name: part for name, part in certificate.items() if name != "signature"}
        content = json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode("ascii")
        value = base64.b64encode(self.key.sign(content)).decode("ascii")
        return {**unsigned, "signature": {"algorithm": "Ed25519", "value": value}}

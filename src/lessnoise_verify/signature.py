"""Who wrote a certificate: an Ed25519 signature of its canonical form."""

from __future__ import annotations

import base64
import binascii
import importlib
import json
from typing import TYPE_CHECKING, Any

from lessnoise_verify.document import NotCovered, Refuted, Unreadable

if TYPE_CHECKING:
    from lessnoise_verify.document import Fields


def canonical(values: dict[str, Any]) -> bytes:
    """What is signed: the certificate without its signature, as JSON in ASCII with sorted names and no spaces."""
    content = {name: value for name, value in values.items() if name != "signature"}
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True).encode("ascii")


def check_signature(given: Fields, public_key: bytes) -> None:
    """Refuted unless the holder of the key signed the certificate as it is; the key is in PEM form."""
    if "signature" not in given:
        raise Refuted("the certificate is not signed.")
    signature = given.fields("signature")
    signature.choice("algorithm", "Ed25519")
    try:
        value = base64.b64decode(signature.text("value"), validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable("the signature is not base64.") from None
    signature.end()
    try:
        ed25519 = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
        serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
        exceptions = importlib.import_module("cryptography.exceptions")
    except ImportError:
        raise NotCovered("signatures are checked with the package cryptography, which is not installed.") from None
    try:
        key = serialization.load_pem_public_key(public_key)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        raise Unreadable("the public key is not a key in PEM form.") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise Unreadable("the public key is not an Ed25519 key.")
    try:
        key.verify(value, canonical(given.values))
    except exceptions.InvalidSignature:
        raise Refuted("the signature does not belong to this certificate and this key: one of them changed.") from None

"""The form of certificates: version 2 has long tables of numbers as base64 of doubles, version 1 has them in full."""

from __future__ import annotations

from typing import Any

from lessnoise._version import CERTIFICATE_SCHEMA
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

SCHEMAS = (1, CERTIFICATE_SCHEMA)


def check_form(values: Any, kind: str) -> dict[str, Any]:  # noqa: ANN401
    """A certificate of either version and of this kind; one clear sentence for anything else."""
    if not isinstance(values, dict):
        raise InvalidInput(f"certificate of type {type(values).__name__} is not a dict: pass what to_dict returned.")
    schema = values.get("schema")
    if type(schema) is not int or schema not in SCHEMAS:
        raise InvalidInput(
            f"schema={shown(schema)} is not 1 or 2: this certificate was written by another version of lessnoise, or "
            "is none; read it with that version."
        )
    if schema == CERTIFICATE_SCHEMA and values.get("kind") != kind:
        raise InvalidInput(
            f"kind={shown(values.get('kind'))} is not {kind!r}: pass the certificate of a {kind}, or run lessnoise "
            "verify on the file."
        )
    return values

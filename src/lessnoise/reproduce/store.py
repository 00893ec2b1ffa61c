"""Where results are kept: one JSON file a computation, its pictures beside it, and a fingerprint of what made them."""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from lessnoise._version import __version__
from lessnoise.files import write_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from lessnoise.reproduce.item import Made, Numbers, Work

DATA, FIGURES = "data", "figures"
_LIBRARIES = ("numpy", "scipy", "matplotlib", "scikit-learn")
_NO_NUMBERS = (
    "cli/",
    "report/explorer/",
    "report/html.py",
    "report/style.py",
    "reproduce/page.py",
    "reproduce/registry.py",
    "reproduce/run.py",
    "reproduce/style.py",
    "reproduce/words/",
)
"""What a change of cannot change a computed number or picture."""


def sha256(content: bytes) -> str:
    """The hash of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def versions() -> dict[str, str]:
    """The libraries that numbers and pictures depend on."""
    return {"lessnoise": __version__, **{name: _version(name) for name in _LIBRARIES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def fingerprint(work: Work, parameters: Numbers) -> str:
    """Equal if and only if name, parameters, libraries and code are."""
    parts = {"work": work.name, "parameters": parameters, "versions": versions(), "code": code_hash()}
    return sha256(json.dumps(parts, sort_keys=True).encode())


@functools.cache
def code_hash() -> str:
    """The hash of the library's own files, without those that only print."""
    digest = hashlib.sha256()
    for name, content in sorted(_sources(resources.files("lessnoise"), "")):
        if not name.startswith(_NO_NUMBERS):
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith((".py", ".json")):
            yield prefix + entry.name, entry.read_bytes()


def save(out: Path, work: Work, parameters: Numbers, made: Made, seconds: float) -> None:
    """Write the pictures, then the numbers that name them: a result is there whole, or not at all."""
    record = {
        "work": work.name,
        "fingerprint": fingerprint(work, parameters),
        "parameters": parameters,
        "versions": versions(),
        "private": False,
        "seconds": round(seconds, 2),
        "pictures": {name: sha256(content) for name, content in made.pictures.items()},
        "numbers": made.numbers,
    }
    record["digest"] = _digest(record)
    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    pictures = {f"{FIGURES}/{name}": content for name, content in made.pictures.items()}
    write_folder(out, {**pictures, f"{DATA}/{work.name}.json": text.encode()}, force=True)


def _digest(record: dict[str, Any]) -> str:
    """The hash of everything else in a record: an edited number is noticed, and computed again."""
    return sha256(json.dumps({**record, "digest": None}, sort_keys=True).encode())


def load(out: Path, work: Work, parameters: Numbers) -> dict[str, Any] | None:
    """The stored record, if it was made by this code with these parameters and nothing was changed since."""
    path = out / DATA / f"{work.name}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record["fingerprint"] != fingerprint(work, parameters) or record["digest"] != _digest(record):
            return None
        for name, digest in record["pictures"].items():
            if sha256((out / FIGURES / name).read_bytes()) != digest:
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record

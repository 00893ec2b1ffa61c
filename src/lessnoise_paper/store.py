"""Where results are kept: one JSON file an experiment, its pictures beside it, and a fingerprint of what made them."""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from lessnoise import __version__
from lessnoise.files import write_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from lessnoise_paper.model import Experiment, Numbers, Result

DATA, FIGURES = "data", "figures"
_LIBRARIES = ("numpy", "scipy", "matplotlib", "scikit-learn")
_PACKAGES = ("lessnoise", "lessnoise_paper")
_NO_NUMBERS = (
    "lessnoise/cli/",
    "lessnoise/explorer/",
    "lessnoise/report/html.py",
    "lessnoise_paper/commands/",
    "lessnoise_paper/formulas.py",
    "lessnoise_paper/registry.py",
    "lessnoise_paper/render.py",
    "lessnoise_paper/run.py",
    "lessnoise_paper/sections/",
    "lessnoise_paper/tables.py",
)
"""What a change of cannot change a computed number or picture."""


def sha256(content: bytes) -> str:
    """The hash of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def versions() -> dict[str, str]:
    """The libraries that numbers and pictures depend on."""
    return {"lessnoise": __version__, **{name: _version(name) for name in _LIBRARIES}}


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def fingerprint(experiment: Experiment, parameters: Numbers) -> str:
    """Equal if and only if name, parameters, libraries and code are."""
    parts = {"experiment": experiment.name, "parameters": parameters, "versions": versions(), "code": code_hash()}
    return sha256(json.dumps(parts, sort_keys=True).encode())


@functools.cache
def code_hash() -> str:
    """The hash of the library's and the paper's own files, without those that only print."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for name, content in sorted(_sources(resources.files(package), f"{package}/")):
            if not name.startswith(_NO_NUMBERS):
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith((".py", ".json")):
            yield prefix + entry.name, entry.read_bytes()


def save(out: Path, experiment: Experiment, parameters: Numbers, result: Result, seconds: float) -> None:
    """Write the pictures, then the numbers that name them: a result is there whole, or not at all."""
    record = {
        "experiment": experiment.name,
        "fingerprint": fingerprint(experiment, parameters),
        "parameters": parameters,
        "versions": versions(),
        "private": False,
        "seconds": round(seconds, 2),
        "files": {name: sha256(content) for name, content in result.files.items()},
        "numbers": result.numbers,
    }
    record["digest"] = _digest(record)
    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    files = {f"{FIGURES}/{name}": content for name, content in result.files.items()}
    write_folder(out, {**files, f"{DATA}/{experiment.name}.json": text.encode()}, force=True)


def _digest(record: dict[str, Any]) -> str:
    """The hash of everything else in a record: an edited number is noticed, and computed again."""
    return sha256(json.dumps({**record, "digest": None}, sort_keys=True).encode())


def load(out: Path, experiment: Experiment, parameters: Numbers) -> dict[str, Any] | None:
    """The stored record, if it was made by this code with these parameters and nothing was changed since."""
    path = out / DATA / f"{experiment.name}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        good = record["fingerprint"] == fingerprint(experiment, parameters)
        if not good or record["digest"] != _digest(record):
            return None
        for name, digest in record["files"].items():
            if sha256((out / FIGURES / name).read_bytes()) != digest:
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record

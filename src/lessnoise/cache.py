"""Answers kept on disk, so that the same question is solved once. Nothing private is in them, and nothing is trusted.

One small JSON file an answer, named by a hash of the question and of the version of the method. Files appear complete
or not at all, so parallel processes are safe. A folder that cannot be written, or a damaged file, costs time only: the
answer is computed again. What is read is material for a computation and never a result: a law has its privacy computed
again before it is used, and confirmed in ball arithmetic where that is quick; a lower bound is what its proof gives
when it is gone through again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from lessnoise import files
from lessnoise.errors import LessnoiseError

VERSION = 4
LARGEST = 16 * 2**20  # bytes of an answer
VARIABLE = "LESSNOISE_CACHE"


def folder() -> Path | None:
    """Where answers lie: $LESSNOISE_CACHE ("off" for nowhere), or lessnoise in the user's cache folder."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return None if chosen == "off" else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "lessnoise"
    except RuntimeError:  # no home
        return None


def load(question: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a question, if it is there and whole."""
    path = _path(question)
    if path is None:
        return None
    try:
        record = json.loads(_read(path))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("question") != question or not isinstance(record.get("answer"), dict):
        return None
    answer: dict[str, Any] = record["answer"]
    return answer


def save(question: dict[str, Any], answer: dict[str, Any]) -> None:
    """Keep an answer, if there is somewhere to keep it."""
    path = _path(question)
    if path is None:
        return
    text = json.dumps({"question": question, "answer": answer}).encode()
    if len(text) > LARGEST:
        return
    with contextlib.suppress(OSError, LessnoiseError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_together({path: files.writer(text)}, force=True)


def _read(path: Path) -> bytes:
    """The content of an ordinary file of a sensible size: no pipe that never ends, no link to somewhere else."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise OSError("no answer of ours")
        return file.read(LARGEST)


def _path(question: dict[str, Any]) -> Path | None:
    base = folder()
    if base is None:
        return None
    name = hashlib.sha256(json.dumps([VERSION, question], sort_keys=True).encode()).hexdigest()[:32]
    return base / f"least-noise-{name}.json"

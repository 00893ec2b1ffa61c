"""The folder of a stream: its plan and key, what is held in memory, and the totals that were released.

``stream.json`` is written once. ``state`` is replaced as a whole in every period, and is on the disk before the
period's total is returned; the total is in it, and is appended to ``totals`` after that, as a row, and the nodes of a
tree that are within another one of the period as further rows. So a process that is killed
leaves the state of one period or the next, and the noise of a period is that of the key and the period alone: whoever
pushes the same value again gets the same total. Totals beyond the state's period can only mean that the state is an
older copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import files, validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

SCHEMA = 1
PLAN, STATE, TOTALS, LOCK = "stream.json", "state", "totals", "lock"
_MAGIC = b"lessnoise stream 1\n"
_LARGEST_HEADER = 1 << 20
_TYPES = {"<f8": np.float64, "<i8": np.int64}


class StreamFolder:
    """An open folder, locked: no other process has it."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock
        self._totals = -1

    def __repr__(self) -> str:
        return f"stream={self.path}"

    # Making and opening.

    @classmethod
    def reserve(cls, path: object) -> StreamFolder:
        """Make a new folder, and lock it; refused if there is something of that name."""
        place = folder_path(path)
        if not place.parent.is_dir():
            raise InvalidInput(f"path={place} is in a folder that does not exist: create {place.parent} first.")
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            raise InvalidInput(f"path={place} exists already: open it with Stream.open, or choose another.") from None
        except OSError as error:
            raise InvalidInput(f"path={place} cannot be made ({error.strerror}): choose another.") from None
        return cls(place, _locked(place))

    @classmethod
    def open(cls, path: object) -> StreamFolder:
        """Lock an existing folder."""
        place = folder_path(path)
        if not (place / PLAN).is_file():
            raise InvalidInput(
                f"path={place} is not a stream: make one with lessnoise stream create, or Stream in Python."
            )
        return cls(place, _locked(place))

    def close(self) -> None:
        """Let others in."""
        for handle in (self._totals, self._lock):
            if handle >= 0:
                os.close(handle)
        self._totals = self._lock = -1

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()

    def discard(self) -> None:
        """Remove a folder that has no stream yet."""
        self.close()
        with contextlib.suppress(OSError):
            for name in (PLAN, STATE, TOTALS, LOCK):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    # The plan.

    def write_plan(self, plan: dict[str, Any], key: bytes, private: bool) -> None:
        """Once, when it is paid for."""
        values = {"schema": SCHEMA, "plan": plan, "private": private, "key": key.hex()}
        values["digest"] = _plan_digest(values, key)
        os.close(self._create(TOTALS))
        self._replace(PLAN, [json.dumps(values, indent=1).encode()])

    def read_plan(self) -> tuple[dict[str, Any], bytes, bool]:
        """As it was written, or refused."""
        text = self._read(PLAN, 1 << 24)
        try:
            values = validation.fields(
                validation.json_object(text.decode(), "stream"),
                ("plan", "private", "key", "digest"),
                "stream",
                schema=SCHEMA,
            )
            key = bytes.fromhex(values["key"])
            intact = len(key) == 32 and hmac.compare_digest(_plan_digest(values, key), values["digest"])
        except (InvalidInput, TypeError, ValueError):
            intact = False
        if not intact:
            raise self._odd(PLAN, "is not as it was written")
        return values["plan"], key, values["private"] is True

    # The state.

    def write_state(self, period: int, value: str, chain: bytes, arrays: dict[str, NDArray[Any]], key: bytes) -> None:
        """The state after a period, on the disk when this returns; the totals before it are there already."""
        header = {
            "period": period,
            "value": value,
            "chain": chain.hex(),
            "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
        }
        text = json.dumps(header).encode()
        parts = [
            _MAGIC,
            len(text).to_bytes(8, "big"),
            text,
            *(np.ascontiguousarray(array) for array in arrays.values()),
        ]
        os.fsync(self._totals_file())
        self._replace(STATE, [*parts, _digest(key, parts)])

    def read_state(self, key: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """The header and the arrays; None before the first period."""
        if not (self.path / STATE).exists():
            return None
        content = self._read(STATE, None)
        body, end = memoryview(content)[:-32], len(_MAGIC) + 8
        if len(content) < end + 32 or not hmac.compare_digest(_digest(key, [body]), content[-32:]):
            raise self._odd(STATE, "is not as it was written")
        length = int.from_bytes(body[len(_MAGIC) : end], "big")
        header, place, arrays = json.loads(bytes(body[end : end + length])), end + length, {}
        for name, kind, shape in header["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(body, _TYPES[kind], count, place).reshape(shape).copy()
            place += 8 * count
        return header, arrays

    # The totals.

    def append(self, place: int, rows: Array) -> None:
        """After the state of the period is on the disk; so many rows are before these."""
        _write(self._totals_file(), [np.ascontiguousarray(rows)], 8 * rows.shape[1] * place)

    def read_rows(self, start: int, stop: int, size: int) -> Array:
        """Rows from start on, counted from 0, until stop."""
        wanted = 8 * size * (stop - start)
        found = os.pread(self._totals_file(), wanted, 8 * size * start)
        if len(found) != wanted:
            raise self._odd(TOTALS, "is shorter than it was")
        return np.frombuffer(found).reshape(-1, size)

    def check_totals(self, before: int, chain: bytes, last: Array) -> None:
        """Refuse rows of another history, and complete them by the last period's, which the state has."""
        record, length = 8 * last.shape[1], os.fstat(self._totals_file()).st_size
        if length > record * (before + len(last)):
            raise self._odd(STATE, f"is older than {TOTALS}, and its noise was used already")
        if length < record * before:
            raise self._odd(TOTALS, "is shorter than it was")
        found = b""
        for each in range(before):
            found = chained(found, self.read_rows(each, each + 1, last.shape[1]))
        found = chained(found, last)
        self.append(before, last)
        if found != chain:
            raise self._odd(TOTALS, "is not as it was written")

    # Files.

    def _totals_file(self) -> int:
        if self._totals < 0:
            self._totals = self._opened(TOTALS, os.O_RDWR)
        return self._totals

    def _create(self, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        return os.open(self.path / name, flags, 0o600)

    def _replace(self, name: str, parts: list[Any]) -> None:
        """A file of its owner's alone, which appears complete or not at all."""
        new = f"{name}.new"
        (self.path / new).unlink(missing_ok=True)
        handle = self._create(new)
        try:
            _write(handle, parts, 0)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(self.path / new, self.path / name)
        files.sync_names([self.path / name])

    def _opened(self, name: str, flags: int) -> int:
        try:
            handle = os.open(self.path / name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise self._odd(name, f"cannot be opened ({error.strerror})") from None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or (os.name == "posix" and found.st_mode & 0o077):
            os.close(handle)
            raise InvalidInput(
                f"{self} has a file {name} that is not an ordinary file, or that others may use: restore it, with "
                "chmod 600."
            )
        return handle

    def _read(self, name: str, most: int | None) -> bytes:
        with os.fdopen(self._opened(name, os.O_RDONLY), "rb") as file:
            return file.read() if most is None else file.read(most)

    def _odd(self, name: str, what: str) -> StreamDamaged:
        return StreamDamaged(f"{self} cannot go on: its file {name} {what}; restore the newest copy.")


class StreamDamaged(LessnoiseError):
    """The files of a stream are not as they were written; nothing was drawn or released."""


def folder_path(path: object) -> Path:
    """A path that can be one."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise InvalidInput(f"path={shown(path)} is not a path: pass the name of the stream's folder.")
    if "\0" in os.fspath(path) or not validation.is_unicode(str(os.fspath(path))):
        raise InvalidInput(f"path={shown(path)} is not a name for a folder: choose another.")
    return Path(path)


def chained(before: bytes, rows: Array) -> bytes:
    """The digest of all rows so far, from that of those before."""
    for row in np.ascontiguousarray(rows):
        before = hashlib.blake2b(before + row.tobytes(), digest_size=32).digest()
    return before


def _locked(place: Path) -> int:
    if fcntl is None:
        raise InvalidInput(f"path={place}: this system has no file locks of the POSIX kind; leave path= out.")
    try:
        handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise InvalidInput(f"path={place} cannot be locked ({error.strerror}): check its permissions.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InvalidInput(f"path={place} is in use by another process or object: close that one first.") from None
    return handle


def _write(handle: int, parts: list[Any], start: int) -> None:
    place = start
    for part in parts:
        view = memoryview(part).cast("B") if len(part) else memoryview(b"")
        while view:
            written = os.pwrite(handle, view, place)
            view, place = view[written:], place + written


def _plan_digest(values: dict[str, Any], key: bytes) -> str:
    text = json.dumps([values["schema"], values["plan"], values["private"]], sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=32, key=key, person=b"stream plan").hexdigest()


def _digest(key: bytes, parts: list[Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=32, key=key, person=b"stream state")
    for part in parts:
        digest.update(part)
    return digest.digest()

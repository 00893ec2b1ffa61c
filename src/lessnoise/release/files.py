"""Reading arrays, and writing a release so that both files appear or neither does."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from numpy.typing import NDArray

    from lessnoise.release.release import Release


def certificate_path(target: Path) -> Path:
    """OUT.npy -> OUT.npy.certificate.json."""
    return target.with_name(target.name + ".certificate.json")


def load_array(path: Path) -> NDArray[Any]:
    """Read one .npy array; never runs code from the file."""
    if not path.is_file():
        raise InvalidInput(f"input={path} does not exist: pass the path of an existing .npy file.")
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise InvalidInput(f"input={path} is not a readable .npy array of numbers: write it with numpy.save.") from None
    if not isinstance(loaded, np.ndarray):
        raise InvalidInput(f"input={path} holds several arrays: pass a .npy file with one array.")
    return loaded


def check_writable(target: Path, force: bool) -> None:
    """Refuse early, before any noise is drawn."""
    if not target.parent.is_dir():
        raise InvalidInput(f"output={target} is in a folder that does not exist: create {target.parent} first.")
    for path in (target, certificate_path(target)):
        if path.is_dir():
            raise InvalidInput(f"output={path} is a folder: pass a file name.")
        if path.exists() and not force:
            raise InvalidInput(f"output={path} exists already: choose another name or pass --force.")


def write_release(release: Release, target: Path, force: bool = False) -> None:
    """Write the noisy array and its certificate, both or neither; the certificate appears first."""
    check_writable(target, force)
    text = release.certificate.to_json() + "\n"
    staged: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    try:
        staged.append((_stage(target, lambda file: file.write(text.encode())), certificate_path(target)))
        staged.append((_stage(target, lambda file: np.save(file, release.value)), target))
        for temporary, path in staged:
            _place(temporary, path, force)
            placed.append(path)
    except BaseException:
        for path in placed:
            path.unlink(missing_ok=True)
        raise
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def _stage(target: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a complete temporary file beside the target."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _place(temporary: Path, path: Path, force: bool) -> None:
    """Give the finished file its name, atomically; without ``force`` never over an existing one."""
    os.chmod(temporary, 0o666 & ~_umask())
    if force:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise InvalidInput(f"output={path} exists already: choose another name or pass --force.") from None
    except OSError:  # a file system without hard links
        os.replace(temporary, path)
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

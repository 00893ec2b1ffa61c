"""Writing files so that all of a set appear, complete, or none does."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Writer = Callable[[BinaryIO], object]


def check_free(paths: Iterable[Path], force: bool) -> None:
    """Refuse, before any work is done, what could not be written later."""
    for path in paths:
        if not path.parent.is_dir():
            raise InvalidInput(f"output={path} is in a folder that does not exist: create {path.parent} first.")
        if path.is_dir():
            raise InvalidInput(f"output={path} is a folder: pass the name of a file.")
        if path.exists() and not force:
            raise _exists(path)
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise InvalidInput(
                f"output={path} may not be written: choose a folder in which you may write, or change its permissions."
            )


def check_folder(folder: Path, names: Iterable[str], force: bool) -> None:
    """The same for files in a folder that may have to be made; nothing is made yet."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"out={folder} is a file: pass the name of a folder.")
    if folder.is_dir():
        check_free([folder / name for name in names], force)
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidInput(f"out={folder} cannot be written: choose a folder that you may write to.")


def write_together(writers: Mapping[Path, Writer], force: bool = False) -> None:
    """Write every file in full beside its place, then give them their names, in order; on failure, undo."""
    check_free(writers, force)
    staged: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    try:
        staged.extend((_stage(path, write), path) for path, write in writers.items())
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


def write_folder(folder: Path, contents: Mapping[str, bytes], force: bool = False) -> None:
    """Write files together into a folder, which is made if it is not there."""

    def writer(content: bytes) -> Writer:
        return lambda file: file.write(content)

    folder.mkdir(parents=True, exist_ok=True)
    write_together({folder / name: writer(content) for name, content in contents.items()}, force)


def _stage(path: Path, write: Writer) -> Path:
    """Write a complete temporary file beside the target."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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
        raise _exists(path) from None
    except OSError:  # a file system without hard links
        os.replace(temporary, path)


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(
        f"output={path} exists already: choose another name, or overwrite it with --force (force=True in Python)."
    )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

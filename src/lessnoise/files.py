"""Writing files so that all of a set appear, complete, or none does."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Writer = Callable[[BinaryIO], object]

_PREFIX = ".lessnoise-"
_ZEROS = bytes(1 << 20)


def check_free(paths: Iterable[Path], force: bool) -> None:
    """Refuse, before any work is done, what could not be written later."""
    for path in paths:
        mode = _mode(path)
        if not path.parent.is_dir():
            raise InvalidInput(f"output={path} is in a folder that does not exist: create {path.parent} first.")
        if path.is_dir():
            raise InvalidInput(f"output={path} is a folder: pass the name of a file.")
        if mode is not None and not force:
            raise _exists(path)
        if mode is not None and not stat.S_ISREG(mode):
            raise InvalidInput(f"output={path} is a link, a pipe or a device: pass the name of an ordinary file.")
        if not os.access(path.parent, os.W_OK | os.X_OK) or (mode is not None and _is_guarded(path)):
            raise InvalidInput(
                f"output={path} may not be written: choose a folder in which you may write, or change its permissions."
            )


def check_apart(outputs: Iterable[Path], inputs: Mapping[str, Path]) -> None:
    """Refuse an output that would take the place of something that is still needed."""
    for path in outputs:
        for name, other in inputs.items():
            if os.path.realpath(path) == os.path.realpath(other) or _same(path, other):
                raise InvalidInput(f"output={path} would replace {name}={other}: choose another name.")


def check_folder(folder: Path, names: Iterable[str], force: bool) -> None:
    """The same for files in a folder that may have to be made; nothing is made yet."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"out={folder} is a file: pass the name of a folder.")
    if folder.is_dir():
        check_free([folder / name for name in names], force)
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidInput(f"out={folder} cannot be written: choose a folder that you may write to.")


class Staged:
    """Files that are being written beside their places, each under a name of its own."""

    def __init__(self, force: bool) -> None:
        self.force = force
        self.temporary: dict[Path, Path] = {}
        self.keep = False  # leave complete files where they are, if they cannot get their names

    def reserve(self, path: Path, size: int) -> None:
        """Make the file, with room on the disk for so many bytes."""
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX)
            self.temporary[path] = Path(name)
            with os.fdopen(handle, "wb") as file:
                _allocate(file, size)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None

    def write(self, path: Path, write: Writer) -> None:
        """Its content, complete and on the disk."""
        with self.temporary[path].open("r+b") as file:
            write(file)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())

    def place(self) -> None:
        """Give the files their names, in order; on failure, undo.

        The last file vouches for the others (a certificate). With ``force`` its old version goes first, so that old and
        new never stand beside each other, whenever the process is killed.
        """
        *others, last = self.temporary
        placed: list[Path] = []
        if self.force and others:
            last.unlink(missing_ok=True)
            sync_names([last])
        try:
            for path, temporary in self.temporary.items():
                if path == last:
                    sync_names(placed)
                _place(temporary, path, self.force)
                placed.append(path)
            sync_names([last])
        except BaseException:
            if not (self.keep and self.force):
                for path in placed:
                    path.unlink(missing_ok=True)
            raise

    def where(self) -> list[Path]:
        """Where the files are now."""
        return [temporary if temporary.exists() else path for path, temporary in self.temporary.items()]

    def discard(self) -> None:
        """Remove what has no name of its own; if that fails, the files are in their places all the same."""
        for temporary in self.temporary.values():
            with contextlib.suppress(OSError):
                temporary.unlink()


@contextlib.contextmanager
def staged(sizes: Mapping[Path, int], force: bool = False) -> Iterator[Staged]:
    """Make a file beside each place, with room for so many bytes: what cannot be written is refused now.

    In the context every file is to be written, and then all of them placed; what is not placed is removed.
    """
    check_free(sizes, force)
    files = Staged(force)
    placed = False
    try:
        for path, size in sizes.items():
            files.reserve(path, size)
        yield files
        placed = True
    finally:
        if placed or not files.keep:
            files.discard()


def write_together(writers: Mapping[Path, Writer], force: bool = False) -> None:
    """Write every file in full beside its place, then give them their names, in order; on failure, undo."""
    with staged(dict.fromkeys(writers, 0), force) as files:
        for path, write in writers.items():
            files.write(path, write)
        files.place()


def write_folder(folder: Path, contents: Mapping[str, bytes], force: bool = False) -> None:
    """Write files together into a folder, which is made if it is not there."""
    with made_folder(folder):
        write_together({folder / name: writer(content) for name, content in contents.items()}, force)


def writer(content: bytes) -> Writer:
    """Of these bytes."""
    return lambda file: file.write(content)


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder, with those above it; on failure, remove those that were made."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for each in missing:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                each.rmdir()
        raise


def _allocate(file: BinaryIO, size: int) -> None:
    """Room on the disk: by the system's own call, or by zeros where there is none."""
    if size == 0:
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", errno.ENOSYS) not in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
            raise
        for start in range(0, size, len(_ZEROS)):
            file.write(_ZEROS[: size - start])


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
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            raise _exists(path) from None
        os.replace(temporary, path)


def _mode(path: Path) -> int | None:
    """What is there, links not followed; None if nothing is."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"output={path} is not a name for a file ({reason}): choose another.") from None


def _is_guarded(path: Path) -> bool:
    """A file of somebody else's in a folder such as /tmp, where only its owner may replace it."""
    folder = path.parent.stat()
    owners = (path.lstat().st_uid, folder.st_uid, 0)
    return bool(folder.st_mode & stat.S_ISVTX) and hasattr(os, "geteuid") and os.geteuid() not in owners


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def sync_names(paths: Iterable[Path]) -> None:
    """Bring the names of files to the disk, where the system can."""
    for folder in {path.parent for path in paths}:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(
        f"output={path} exists already: choose another name, or overwrite it with --force (force=True in Python)."
    )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

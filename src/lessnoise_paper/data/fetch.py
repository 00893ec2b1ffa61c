"""Public data files: found in a folder or downloaded once, and used only if their content is the expected one."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from lessnoise.cache import folder
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.files import write_together

VARIABLE = "LESSNOISE_DATA"
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file by its possible names, the sha256 of its decompressed content, and where it is published."""

    names: tuple[str, ...]
    sha256: str
    url: str | None = None


MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MNIST = {
    name: PublicFile((name,), digest, f"{MNIST_SOURCE}{name}.gz")
    for name, digest in {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }.items()
}
"""Its four files: images after 16 bytes, labels after 8."""


def read_public(title: str, files: tuple[PublicFile, ...], folder: str | os.PathLike[str] | None = None) -> bytes:
    """The decompressed content of the first of some files that is there.

    Looked for in ``folder``, or in the folder that $LESSNOISE_DATA names, also one level below; without either, in the
    cache, and then at the public source. A file whose content is not the expected one is refused.
    """
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if chosen is not None:
        place = Path(chosen)
        if not place.is_dir():
            raise InvalidInput(f"data={place} is not a folder: pass the folder that holds {files[0].names[0]}.")
        found = _look(files, [place, *sorted(entry for entry in place.iterdir() if entry.is_dir())])
        if found is None:
            wanted = " or ".join(file.names[0] for file in files)
            raise InvalidInput(f"data={place} holds no {wanted} (nor .gz): {_advice(title, files)}")
        return found
    cache = cache_folder()
    found = None if cache is None or not cache.is_dir() else _look(files, [cache])
    return _download(title, files, cache) if found is None else found


def _look(files: tuple[PublicFile, ...], places: list[Path]) -> bytes | None:
    for file in files:
        for place in places:
            for name in file.names:
                for path in (place / name, place / f"{name}.gz"):
                    if path.is_file():
                        return _checked(path.read_bytes(), file, str(path))
    return None


def _checked(content: bytes, file: PublicFile, where: str) -> bytes:
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise InvalidInput(f"file={where} is not a whole gzip file: fetch it again.") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise InvalidInput(f"file={where} has sha256 {digest}, not {file.sha256}: fetch the original again.")
    return content


def _download(title: str, files: tuple[PublicFile, ...], cache: Path | None) -> bytes:
    from urllib.error import URLError
    from urllib.request import urlopen

    file = next(file for file in files if file.url is not None)
    try:
        with urlopen(str(file.url), timeout=_TIMEOUT) as answer:
            content = _checked(answer.read(), file, str(file.url))
    except (URLError, OSError) as error:
        reason = str(getattr(error, "reason", error)).rstrip(".") or type(error).__name__
        raise InvalidInput(
            f"data=None, and {file.url} could not be downloaded ({reason}): save {title} from there in a folder and "
            f"pass that folder (--data FOLDER, or the environment variable {VARIABLE})."
        ) from None
    if cache is not None:
        with contextlib.suppress(OSError, LessnoiseError):  # then it is downloaded again the next time
            cache.mkdir(parents=True, exist_ok=True)
            write_together({cache / file.names[0]: lambda target: target.write(content)}, force=True)
    return content


def _advice(title: str, files: tuple[PublicFile, ...]) -> str:
    url = next(file.url for file in files if file.url is not None)
    return (
        f"for {title}, save {url} in a folder and pass that folder (--data FOLDER, or the environment variable "
        f"{VARIABLE})."
    )


def cache_folder() -> Path | None:
    """Where downloads are kept, if there is a cache."""
    base = folder()
    return None if base is None else base / "data"

"""Reading arrays, and writing a release so that both files appear or neither does."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.files import check_free, write_together

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lessnoise.release.release import Release


def certificate_path(target: Path) -> Path:
    """OUT.npy -> OUT.npy.certificate.json."""
    return target.with_name(target.name + ".certificate.json")


def load_array(path: Path) -> NDArray[Any]:
    """Read one .npy array; never runs code from the file."""
    if not path.is_file():
        raise InvalidInput(f"input={path} does not exist: pass the path of an existing .npy file.")
    with path.open("rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, OSError, zipfile.BadZipFile):
            raise InvalidInput(
                f"input={path} is not a readable .npy array of numbers: write it with numpy.save."
            ) from None
    if not isinstance(loaded, np.ndarray):
        raise InvalidInput(f"input={path} holds several arrays: pass a .npy file with one array.")
    return loaded


def check_writable(target: Path, force: bool) -> None:
    """Refuse early, before any noise is drawn."""
    check_free((certificate_path(target), target), force)


def write_release(release: Release, target: Path, force: bool = False) -> None:
    """Write the noisy array and its certificate, both or neither; the certificate appears first."""
    text = release.certificate.to_json() + "\n"
    write_together(
        {
            certificate_path(target): lambda file: file.write(text.encode()),
            target: lambda file: np.save(file, release.value),
        },
        force,
    )

"""Reading arrays, and writing a release so that both files appear or neither does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import npy
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
    return npy.load(path)


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

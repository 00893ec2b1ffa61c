"""MNIST and CIFAR-10 as arrays: from a local folder, or from their public sources; contents are checked by sha256."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise import files, validation
from lessnoise.errors import InvalidInput
from lessnoise_paper.data.fetch import MNIST, VARIABLE, cache_folder, read_public

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

CIFAR_SOURCE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_ARCHIVE = "cifar-10-binary.tar.gz"
_CIFAR = {  # sha256 of the pixels (images, height, width, colours), then of the labels
    "train": "f912919bdea371136f1aa4feed6beeca728015a5f08b1899a29c932a7e30be2b",
    "test": "8193b3fbce55bec361cd1b8fd4880cb1649832dc4d6de6da1e7a21847a4843aa",
}


class Images(NamedTuple):
    """Pixels (images, height, width, channels) of 0..255 and labels of 0..9."""

    train: Bytes
    train_labels: Bytes
    test: Bytes
    test_labels: Bytes


def load(data: str, folder: str | os.PathLike[str] | None = None) -> Images:
    """The data set from a folder, or from the one that $LESSNOISE_DATA names; without either, from the public source.

    What is downloaded stays in the cache. Content that is not the expected one is refused.
    """
    validation.choice("data", data, ("mnist", "cifar10"))
    return _mnist(folder) if data == "mnist" else _cifar(folder)


def _mnist(folder: str | os.PathLike[str] | None) -> Images:
    parts = []
    for name, file in MNIST.items():
        content = np.frombuffer(read_public("MNIST", (file,), folder), dtype=np.uint8)
        parts.append(content[16:].reshape(-1, 28, 28, 1) if "images" in name else content[8:])
    return Images(*parts)


def _cifar(folder: str | os.PathLike[str] | None) -> Images:
    """The binary archive, or PNG files of 10,000 rows with one image each and JSON lists of labels."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    place = _downloaded() if chosen is None else Path(chosen)
    if not place.is_dir():
        raise InvalidInput(f"data={place} is not a folder: pass the folder that holds {_ARCHIVE}.")
    archive = _find(place, _ARCHIVE)
    if archive is not None:
        found = _from_archive(archive)
    elif _find(place, "test_batch.png") is not None:
        found = _from_png(place)
    else:
        raise _missing(place, _ARCHIVE)
    for part, pixels, labels in (
        ("train", found.train, found.train_labels),
        ("test", found.test, found.test_labels),
    ):
        digest = hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest()
        if digest != _CIFAR[part]:
            raise InvalidInput(
                f"sha256={digest[:16]}... of the CIFAR-10 {part} data is not {_CIFAR[part][:16]}...: fetch it again."
            )
    return found


def _downloaded() -> Path:
    """The folder of the cache with the archive in it."""
    from urllib.request import urlopen

    place = cache_folder()
    if place is None:
        raise InvalidInput(f"data=None, and there is no cache: name a folder (--data FOLDER, or {VARIABLE}).")
    if not (place / _ARCHIVE).is_file():
        try:
            with urlopen(CIFAR_SOURCE, timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise InvalidInput(
                f"data=None, and {CIFAR_SOURCE} could not be downloaded ({error}): save it in a folder and pass that "
                f"folder (--data FOLDER, or the environment variable {VARIABLE})."
            ) from None
        place.mkdir(parents=True, exist_ok=True)
        files.write_together({place / _ARCHIVE: lambda file: file.write(content)}, force=True)
    return place


def _from_archive(path: Path) -> Images:
    """Rows of a label and 3072 bytes, colour by colour."""
    rows: dict[str, Bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = Path(member.name).name
            if name.endswith(".bin"):
                content = archive.extractfile(member)
                rows[name] = np.frombuffer(content.read() if content else b"", dtype=np.uint8).reshape(-1, 3073)
    train = np.concatenate([rows[f"data_batch_{i}.bin"] for i in range(1, 6)])
    test = rows["test_batch.bin"]

    def pixels(part: Bytes) -> Bytes:
        return np.ascontiguousarray(part[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))

    return Images(pixels(train), train[:, 0].copy(), pixels(test), test[:, 0].copy())


def _from_png(folder: Path) -> Images:
    from PIL import Image

    def pixels(name: str) -> Bytes:
        path = _find(folder, name)
        if path is None:
            raise _missing(folder, name)
        with Image.open(path) as picture:
            rows: Bytes = np.asarray(picture.convert("RGB"), dtype=np.uint8)
        return rows.reshape(-1, 32, 32, 3)

    def labels(*names: str) -> Bytes:
        for name in names:
            path = _find(folder, name)
            if path is not None:
                return np.array(json.loads(path.read_text()), dtype=np.uint8).ravel()
        raise _missing(folder, names[0])

    train = np.concatenate([pixels(f"data_batch_{i}.png") for i in range(1, 6)])
    return Images(
        train,
        labels("train_lables.json", "train_labels.json"),
        pixels("test_batch.png"),
        labels("test_lables.json", "test_labels.json"),
    )


def _find(folder: Path, name: str) -> Path | None:
    direct = folder / name
    return direct if direct.is_file() else next(iter(sorted(folder.rglob(name))), None)


def _missing(folder: Path, name: str) -> InvalidInput:
    return InvalidInput(f"data={folder} holds no {name}: save {CIFAR_SOURCE} there, or leave the folder out.")

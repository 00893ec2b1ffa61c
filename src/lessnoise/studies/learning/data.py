"""MNIST and CIFAR-10 as arrays: from a local folder, or from their public sources; contents are checked by sha256."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

VARIABLE = "LESSNOISE_DATA"
MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
CIFAR_SOURCE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_MNIST = {  # sha256 of the decompressed files
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
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


def load(data: str, folder: str | os.PathLike[str] | None = None, *, download: bool = False) -> Images:
    """The data set from a folder (or the one that LESSNOISE_DATA names), searched with its subfolders.

    With ``download`` what is not there is fetched from the public source into that folder.
    """
    validation.choice("data", data, ("mnist", "cifar10"))
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if named is None:
        raise InvalidInput(f"folder=None: pass the folder that holds {data}, or name it in the variable {VARIABLE}.")
    place = Path(named)
    if not place.is_dir():
        raise InvalidInput(f"folder={place} does not exist: create it, or name the one that holds {data}.")
    return _mnist(place, download) if data == "mnist" else _cifar(place, download)


def _mnist(folder: Path, download: bool) -> Images:
    parts = []
    for name, digest in _MNIST.items():
        packed, plain = _find(folder, f"{name}.gz"), _find(folder, name)
        if packed is None and plain is None:
            if not download:
                raise _missing(folder, f"{name}.gz", MNIST_SOURCE)
            packed = _fetch(f"{MNIST_SOURCE}{name}.gz", folder / f"{name}.gz")
        content = plain.read_bytes() if plain is not None else gzip.decompress((packed or folder).read_bytes())
        _check(content, digest, name)
        if "images" in name:
            parts.append(np.frombuffer(content, dtype=np.uint8, offset=16).reshape(-1, 28, 28, 1))
        else:
            parts.append(np.frombuffer(content, dtype=np.uint8, offset=8))
    return Images(*parts)


def _cifar(folder: Path, download: bool) -> Images:
    """The binary archive, or PNG files of 10,000 rows with one image each and JSON lists of labels."""
    archive = _find(folder, "cifar-10-binary.tar.gz")
    if archive is None and _find(folder, "test_batch.png") is not None:
        found = _from_png(folder)
    else:
        if archive is None:
            if not download:
                raise _missing(folder, "cifar-10-binary.tar.gz", CIFAR_SOURCE)
            archive = _fetch(CIFAR_SOURCE, folder / "cifar-10-binary.tar.gz")
        found = _from_archive(archive)
    for part, pixels, labels in (
        ("train", found.train, found.train_labels),
        ("test", found.test, found.test_labels),
    ):
        _check(pixels.tobytes() + labels.tobytes(), _CIFAR[part], f"CIFAR-10 {part} data")
    return found


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
            raise _missing(folder, name, CIFAR_SOURCE)
        with Image.open(path) as picture:
            rows: Bytes = np.asarray(picture.convert("RGB"), dtype=np.uint8)
        return rows.reshape(-1, 32, 32, 3)

    def labels(*names: str) -> Bytes:
        for name in names:
            path = _find(folder, name)
            if path is not None:
                return np.array(json.loads(path.read_text()), dtype=np.uint8).ravel()
        raise _missing(folder, names[0], CIFAR_SOURCE)

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


def _fetch(address: str, path: Path) -> Path:
    from lessnoise import files

    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content = answer.read()
    except OSError as error:
        raise InvalidInput(
            f"source={address} cannot be reached ({error}): put {path.name} into {path.parent} by hand."
        ) from None
    files.write_together({path: lambda file: file.write(content)}, force=True)
    return path


def _check(content: bytes, digest: str, name: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise InvalidInput(
            f"sha256={found[:16]}... of {name} is not {digest[:16]}...: the file is damaged; fetch it anew."
        )


def _missing(folder: Path, name: str, source: str) -> InvalidInput:
    return InvalidInput(
        f"folder={folder} has no {name}: put it there from {source}, or pass download=True (--download)."
    )

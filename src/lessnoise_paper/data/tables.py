"""Tables of features with labels, for the study of components: every entry in [-1, 1] by a public scaling."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise_paper.data.fetch import MNIST, MNIST_SOURCE, VARIABLE, PublicFile, read_public

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Folder = str | os.PathLike[str]

NAMES = ("digits", "enron", "mnist", "swarm")

_ENRON = PublicFile(
    ("emails.csv",),
    "3e5727ecfef339285d996d8841c7fa82d8c5d155c1ed925639d87197d09f9cf1",
    "https://www.kaggle.com/datasets/balaka18/email-spam-classification-dataset-csv",
)
_LARGEST_WORD_COUNT = 2500.0
_SWARM_FILES = ("Flocking.csv", "Flocking.csv.gz")
_SWARM_SHAPE = (24_016, 2_400)
_SWARM_SOURCE = "https://archive.ics.uci.edu/dataset/524/swarm+behaviour"


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Rows with entries in [-1, 1], one label each, and a row norm to clip at that suits them.

    ``image`` is the shape of a row as a picture, where it is one.
    """

    title: str
    rows: Array
    labels: NDArray[np.int64]
    clip_norm: float
    image: tuple[int, int] | None = None


def feature_table(name: str = "digits", folder: Folder | None = None) -> FeatureTable:
    """A table by name. "digits" comes with scikit-learn; the others are read from ``folder`` or $LESSNOISE_DATA.

    >>> digits = feature_table()
    >>> digits.rows.shape, float(digits.rows.min()), float(digits.rows.max())
    ((1797, 64), 0.0, 1.0)
    """
    validation.choice("table", name, NAMES)
    loaders: dict[str, Callable[[Folder | None], FeatureTable]] = {
        "digits": _digits,
        "enron": _enron,
        "mnist": _mnist,
        "swarm": swarm,
    }
    return loaders[name](folder)


def _digits(folder: Folder | None) -> FeatureTable:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError("the digits come with scikit-learn: install lessnoise[sklearn].") from None
    rows, labels = load_digits(return_X_y=True)
    return FeatureTable("scikit-learn's digits", rows / 16.0, labels.astype(np.int64), 4.0, (8, 8))


def _given(folder: Folder | None, title: str, what: str) -> Folder:
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if chosen is None:
        raise InvalidInput(
            f"data=None, but {title} is not part of lessnoise: save {what} in a folder and pass that folder "
            f"(--data FOLDER, or the environment variable {VARIABLE})."
        )
    return chosen


def _enron(folder: Folder | None) -> FeatureTable:
    title = "the Enron table of word counts"
    content = read_public(title, (_ENRON,), _given(folder, title, f"emails.csv from {_ENRON.url}"))
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    next(text)
    table = np.loadtxt((line.split(",", 1)[1] for line in text), delimiter=",")
    rows = np.log1p(np.minimum(table[:, :-1], _LARGEST_WORD_COUNT)) / np.log1p(_LARGEST_WORD_COUNT)
    return FeatureTable("Enron word counts", rows, table[:, -1].astype(np.int64), 3.0)


def _mnist(folder: Folder | None) -> FeatureTable:
    title = "the MNIST training set"
    place = _given(folder, title, f"the two train-* files from {MNIST_SOURCE}")
    images, labels = (
        np.frombuffer(read_public(title, (MNIST[f"train-{name}-ubyte"],), place), dtype=np.uint8, offset=skipped)
        for name, skipped in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return FeatureTable("MNIST", images.reshape(-1, 784) / 255.0, labels.astype(np.int64), 9.0, (28, 28))


def swarm(folder: Folder | None, shape: tuple[int, int] = _SWARM_SHAPE) -> FeatureTable:
    """The flocking table of Swarm Behaviour (UCI 524), each column scaled to [-1, 1] by its own extent.

    The extents are read from the table, as the paper does. That is not private, and neither is a study.
    """
    title = "the Swarm Behaviour table"
    place = Path(_given(folder, title, f"Flocking.csv from {_SWARM_SOURCE}"))
    path = next((place / name for name in _SWARM_FILES if (place / name).is_file()), None)
    if path is None:
        raise InvalidInput(f"data={place} holds no Flocking.csv: save it there from {_SWARM_SOURCE}.")
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
    except ValueError as error:
        raise InvalidInput(f"file={path} is not a table of numbers ({error}): fetch the original again.") from None
    if table.shape != (shape[0], shape[1] + 1):
        raise InvalidInput(
            f"file={path} has {table.shape[0]} rows of {table.shape[1]} numbers, not {shape[0]} of {shape[1] + 1} "
            f"(features and a label): fetch Flocking.csv from {_SWARM_SOURCE} again."
        )
    rows = table[:, :-1]
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows -= low  # in place: a copy would take half a gigabyte
    rows /= 0.5 * np.where(high > low, high - low, 2.0)
    rows -= np.where(high > low, 1.0, 0.0)
    return FeatureTable("Swarm Behaviour", rows, table[:, -1].astype(np.int64), 0.5 * float(np.sqrt(shape[1])))

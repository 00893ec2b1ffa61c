"""The options that commands share: one name, one help text and one check each."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import BEST, CATALOGUE, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from lessnoise.mechanism import Request


def _mechanism_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in CATALOGUE if name.startswith(incomplete)]


def _names_and_best(incomplete: str) -> list[str]:
    return [*([BEST] if BEST.startswith(incomplete) else []), *_mechanism_names(incomplete)]


def _one_of(*words: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


# What to protect, and how well.

Shape = Annotated[str, typer.Option(help="Shape of the value, such as 7921 or 89x89.", metavar="N[xN...]")]
Sensitivity = Annotated[float, typer.Option(help="Largest l2 change that one individual can cause.")]
L1Sensitivity = Annotated[
    float | None, typer.Option(help="Largest l1 change, for Laplace noise. [default: sqrt(M) times the l2 one]")
]
Epsilon = Annotated[float, typer.Option(help="Target epsilon.")]
Delta = Annotated[float, typer.Option(help="Target delta.")]
NeighboursOption = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="Which data sets are neighbours: add/remove or replace.",
        autocompletion=_one_of("add/remove", "replace"),
    ),
]

# Which noise.

MechanismName = Annotated[
    str,
    typer.Argument(
        help="Name of the mechanism, such as r1smg or classic-gaussian.",
        autocompletion=_mechanism_names,
        show_default=False,
    ),
]
MechanismOrBest = Annotated[
    str,
    typer.Option(
        help="Mechanism by name; 'best' is least-noise, or what an l1 sensitivity or entry bound beats it with.",
        autocompletion=_names_and_best,
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        help="For mechanisms that have both: published (what the source says) or exact.",
        autocompletion=_one_of("published", "exact"),
    ),
]
K = Annotated[
    float | None, typer.Option("--k", help="Radial member: exponent k of the radius, at most M; product noise: its k.")
]
P = Annotated[float | None, typer.Option("--p", help="Radial member, generalized Gaussian: exponent p of the tail.")]
Bound = Annotated[float | None, typer.Option(help="Published MVG: largest Frobenius norm of the value.")]
EntryBound = Annotated[
    float | None,
    typer.Option(help="Correlated noise: one individual adds to each entry between 0 and this (add/remove)."),
]
Integer = Annotated[bool, typer.Option("--integer", help="The value holds whole numbers: integer noise will do.")]
Counts = Annotated[
    bool, typer.Option("--counts", help="The value is a histogram: H_b and DAWA will do, with --l1-sensitivity.")
]
Objective = Annotated[
    str,
    typer.Option(
        help="What least-noise makes small: squared, l2, or a quantile of the loss, such as quantile:0.95.",
        autocompletion=_one_of("squared", "l2", "quantile:0.95"),
    ),
]

# Where from and where to.

LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Pay from this ledger; nothing is drawn if it does not fit."),
]
Partition = Annotated[
    str | None, typer.Option(help="With a ledger: key of the disjoint set of individuals that the release concerns.")
]
UnsafeSeed = Annotated[
    int | None, typer.Option("--seed", help="For experiments only: a reproducible release is NOT private.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def ledger_files(ledger: Path | None) -> dict[str, Path]:
    """What an output must not replace: the ledger, and what the system keeps beside it while somebody writes."""
    endings = () if ledger is None else ("", "-journal", "-wal", "-shm")
    return {f"ledger{ending}": Path(f"{ledger}{ending}") for ending in endings}


def parse_shape(text: str, name: str = "shape") -> tuple[int, ...]:
    """'89x89' -> (89, 89)."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        what = "a shape" if name == "shape" else "a number of cells per axis"
        raise InvalidInput(f"{name}={text!r} is not {what}: write 7921 or 89x89.") from None


def request_of(options: Mapping[str, Any], **known: Any) -> Request:  # noqa: ANN401
    """What a command line asks of a mechanism: options are named as a request's fields, and ``known`` ones win."""
    given = {field.name: options[field.name] for field in fields(Request) if field.name in options} | known
    if isinstance(given["shape"], str):
        given["shape"] = parse_shape(given["shape"])
    return Request(**{**given, "neighbours": Neighbours.of(given["neighbours"])})


def seeded(seed: int | None) -> np.random.Generator | None:
    """None for a private run, or the generator of an experiment."""
    if seed is None:
        return None
    import numpy as np

    return np.random.default_rng(validation.whole_number("seed", seed, 0))

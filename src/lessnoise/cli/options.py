"""The options that commands share: one name, one help text and one check each; and those that make a request."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from lessnoise import validation
from lessnoise.changes import parse
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.ledger import is_on_server
from lessnoise.mechanism import BEST, CATALOGUE, Request
from lessnoise.release import Signer

if TYPE_CHECKING:
    import numpy as np

    from lessnoise.ledger import Ledger
    from lessnoise.mechanism import Mechanism


def _one_of(*words: str) -> Callable[[str], list[str]]:
    """For the shell's completion."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def _number(words: str) -> Any:  # noqa: ANN401
    """A number that need not be given."""
    return Annotated[float | None, typer.Option(help=words)]


# What to protect, and how well.

Epsilon = Annotated[
    float, typer.Option(help="Epsilon of the guarantee. A smaller epsilon hides more and needs more noise.")
]
Delta = Annotated[float, typer.Option(help="Delta of the guarantee, a small number such as 1e-6.")]
NeighboursOption = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="What one individual may do to the data: add/remove (their rows may be there or not) or replace.",
        autocompletion=_one_of("add/remove", "replace"),
    ),
]

# Which noise.

MechanismName = Annotated[
    str,
    typer.Argument(
        help="Name of the mechanism, such as r1smg-published or classic-gaussian.",
        autocompletion=_one_of(*CATALOGUE),
        show_default=False,
    ),
]
MechanismUnlessPlanned = Annotated[
    str | None,
    typer.Argument(
        help="Name of the mechanism; not needed with --plan, whose noise it is.",
        autocompletion=_one_of(*CATALOGUE),
        show_default=False,
    ),
]
MechanismOrBest = Annotated[
    str,
    typer.Option(
        help="Name of a mechanism. 'best' compares those that suit your options and takes the least expected loss.",
        autocompletion=_one_of(BEST, *CATALOGUE),
    ),
]

# Where from and where to.

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="Pay from this ledger. If its budget does not allow the release, no noise is drawn.",
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        help="With a ledger: name of the group of individuals that the release is about. Groups share nobody."
    ),
]
FromPlan = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="NAME",
        help="Pay from the plan of this name in the ledger, with its noise. Noise that is stated must match the plan.",
    ),
]
UnsafeSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", help="For experiments only: with a seed anyone can repeat the noise, so the release is NOT private."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SignWith = Annotated[
    Path | None,
    typer.Option("--sign", metavar="KEY", help="Sign the certificate with the Ed25519 key in this PEM file."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def signer_of(key: Path | None) -> Signer | None:
    """Who signs, if anyone does; a key that cannot be used is refused before anything is paid."""
    return None if key is None else Signer.read(key)


def ledger_files(ledger: str | None) -> dict[str, Path]:
    """What an output must not replace: the ledger's file, and what is kept beside it while somebody writes."""
    endings = () if ledger is None or is_on_server(ledger) else ("", "-journal", "-wal", "-shm")
    return {f"ledger{ending}": Path(f"{ledger}{ending}") for ending in endings}


def planned_noise(ledger: Ledger, plan: str, shape: tuple[int, ...] | None, rate: float = 1.0) -> Mechanism:
    """The noise that a plan of a ledger has for this shape."""
    return next(one for one in ledger.plans() if one.name == plan).mechanism_for(shape, rate=rate)


def parse_shape(text: str, name: str = "shape") -> tuple[int, ...]:
    """'89x89' -> (89, 89)."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        what = "a shape" if name == "shape" else "a number of cells per axis"
        raise InvalidInput(f"{name}={text!r} is not {what}: write 7921 or 89x89.") from None


def parse_keys(text: str) -> tuple[str, ...] | tuple[int, ...]:
    """'bus,taxi' -> ('bus', 'taxi'); '1,2' -> (1, 2), whole numbers as they are written by themselves; '"1",2' texts.

    A key between double quotes is a text, and may hold commas; a double quote in it is written twice.
    """
    parts = re.findall(r'(?:^|,)("(?:[^"]|"")*"(?=,|$)|[^,]*)', text)
    if not all(parts):
        raise InvalidInput(f'keys={shown(text)} has an empty key: write keys with commas between them, or "" for one.')
    if all(re.fullmatch("0|-?[1-9][0-9]*", part) for part in parts):
        return tuple(map(int, parts))
    quoted = [len(part) > 1 and part[0] == part[-1] == '"' for part in parts]
    return tuple(part[1:-1].replace('""', '"') if marked else part for part, marked in zip(parts, quoted, strict=True))


_REQUEST_OPTIONS: dict[str, Any] = {
    "shape": Annotated[str, typer.Option(help="Shape of the array, such as 7921 or 89x89.", metavar="N[xN...]")],
    "sensitivity": Annotated[
        float | None,
        typer.Option(
            help="l2 sensitivity: the largest l2 distance that one individual can move the array. Or --changes."
        ),
    ],
    "epsilon": Epsilon,
    "delta": Delta,
    "changes": Annotated[
        str | None,
        typer.Option(
            help="What one individual can change, instead of --sensitivity: counts (one row of a histogram), "
            "counts:20,per_cell=1 (20 rows, in different cells), ball:1,norm=inf, box:3,4, or corner:1 (every entry "
            "goes up by 0 to 1, or every entry goes down).",
            metavar="SET",
            autocompletion=_one_of("counts", "counts:", "ball:", "corner:", "box:"),
        ),
    ],
    "l1_sensitivity": _number(
        "l1 sensitivity: the largest sum of absolute changes that one individual can cause. Laplace noise needs it. "
        "Default: sqrt(M) times the l2 sensitivity, for M entries."
    ),
    "neighbours": NeighboursOption,
    "k": _number("For radial: exponent k of the radius, at most the number of entries. For product noise: its k."),
    "p": _number("For radial and generalized-gaussian: exponent p of the tail."),
    "bound": _number("For MVG as published or as in its first code: the largest Frobenius norm of the array."),
    "entry_bound": _number(
        "For correlated noise: one individual adds between 0 and this number to every entry (add/remove)."
    ),
    "objective": Annotated[
        str,
        typer.Option(
            help="What least-noise makes as small as it can: squared (the expected squared error), l2 (the expected "
            "length), or a quantile of the loss, such as quantile:0.95.",
            autocompletion=_one_of("squared", "l2", "quantile:0.95"),
        ),
    ],
    "integer": Annotated[
        bool, typer.Option("--integer", help="The array holds whole numbers, so whole-number noise is allowed.")
    ],
    "counts": Annotated[
        bool,
        typer.Option("--counts", help="The array is a histogram, so H_b and DAWA are allowed, with --l1-sensitivity."),
    ],
}
"""One option for each field of a request, but for ``moved``, which only a query can know."""

_DEFAULTS: dict[str, Any] = {
    field.name: field.default.value if isinstance(field.default, Neighbours) else field.default
    for field in dataclasses.fields(Request)
    if field.default is not dataclasses.MISSING
}


def takes_request(*known: str, optional: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a request, in the place of its parameter ``request``.

    The command is called with the request itself. Fields that are ``known`` from elsewhere, such as the shape of an
    array, are no options: the command is called with a function from their values to the request. If the request is
    ``optional``, it or the function is None unless one of its options is given.
    """
    offered = {name: option for name, option in _REQUEST_OPTIONS.items() if name not in known}
    defaults = {name: _DEFAULTS.get(name, None if optional else inspect.Parameter.empty) for name in offered}
    if "sensitivity" in defaults:
        defaults["sensitivity"] = None  # or changes

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        parameters = []
        for name, own in inspect.signature(command).parameters.items():
            options = offered if name == "request" else {name: hints[name]}
            for each, hint in options.items():
                default = defaults[each] if options is offered else own.default
                parameters.append(inspect.Parameter(each, own.KEYWORD_ONLY, default=default, annotation=hint))

        @functools.wraps(command)
        def run(**given: Any) -> None:  # noqa: ANN401
            options = {name: given.pop(name) for name in offered}
            make = functools.partial(_request, options)
            asked = not optional or options != defaults
            command(**given, request=None if not asked else make if known else make())

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _request(options: dict[str, Any], **known: Any) -> Request:  # noqa: ANN401
    given = options | known
    if isinstance(given.get("changes"), str):
        given["changes"] = parse(given["changes"], given.get("neighbours", Neighbours.ADD_REMOVE))
    stated = ("sensitivity",) if given.get("changes") is not None else ()
    missing = [name for name, value in given.items() if value is None and name not in (*_DEFAULTS, *stated)]
    if missing:
        wanted = ("--shape, " if "shape" in options else "") + "--sensitivity (or --changes), --epsilon and --delta"
        raise InvalidInput(f"{missing[0]}=None: pass all of {wanted}, or none.")
    if isinstance(given["shape"], str):
        given["shape"] = parse_shape(given["shape"])
    return Request(**given)


def seeded(seed: int | None) -> np.random.Generator | None:
    """None for a private run, or the generator of an experiment."""
    if seed is None:
        return None
    import numpy as np

    return np.random.default_rng(validation.whole_number("seed", seed, 0))

"""The application and what all commands share: errors, options, output."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lessnoise._version import __version__
from lessnoise.errors import InvalidInput, LessnoiseError

if TYPE_CHECKING:
    from rich.console import Console

EXIT_FAILED_CLAIM = 1
EXIT_BAD_INPUT = 2


class _Group(TyperGroup):
    """Turns every foreseen error into one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except LessnoiseError as error:
            message = str(error)
        except OSError as error:
            message = f"{error.filename or 'file'}: {error.strerror or error}: check the path and its permissions."
        except MemoryError:
            message = (
                "there is not enough memory for this shape: release it in parts, each with its share of the budget."
            )
        typer.echo(f"error: {message}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"lessnoise {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Release arrays under differential privacy, and see what each mechanism really guarantees."""


def run() -> None:
    """Entry point of the ``lessnoise`` command."""
    app()


# Options that several commands take.

Shape = Annotated[str, typer.Option(help="Shape of the value, such as 7921 or 89x89.", metavar="N[xN...]")]
Sensitivity = Annotated[float, typer.Option(help="Largest l2 change that one individual can cause.")]
L1Sensitivity = Annotated[
    float | None, typer.Option(help="Largest l1 change, for Laplace noise. [default: sqrt(M) times the l2 one]")
]
Epsilon = Annotated[float, typer.Option(help="Target epsilon.")]
Delta = Annotated[float, typer.Option(help="Target delta.")]
NeighboursOption = Annotated[
    str, typer.Option("--neighbours", help="Which data sets are neighbours: add/remove or replace.")
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
    typer.Option(help="What least-noise makes small: squared, l2, or a quantile of the loss, such as quantile:0.95."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def parse_shape(text: str) -> tuple[int, ...]:
    """'89x89' -> (89, 89)."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InvalidInput(f"shape={text!r} is not a shape: write 7921 or 89x89.") from None


def print_json(values: object) -> None:
    """Machine-readable output on standard output."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")


def console() -> Console:
    """A console that never squeezes tables when the output is piped."""
    from rich.console import Console

    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=150)


# Each module registers its command.
from lessnoise.cli import (  # noqa: E402
    audit,  # noqa: F401
    check,  # noqa: F401
    claims,  # noqa: F401
    demo,  # noqa: F401
    explore,  # noqa: F401
    frontier,  # noqa: F401
    histogram,  # noqa: F401
    ledger,  # noqa: F401
    plan,  # noqa: F401
    release,  # noqa: F401
    selftest,  # noqa: F401
    study,  # noqa: F401
    study_pca,  # noqa: F401
)

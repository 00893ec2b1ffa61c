"""``lessnoise verify``: prove a certificate with code that shares nothing with the library's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessnoise.cli.options import AsJson
from lessnoise_verify.__main__ import SECONDS, main


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file of a certificate, or a folder of results.")
    ],
    value: Annotated[
        Path | None, typer.Argument(metavar="[VALUE]", help="The released array, a .npy file.", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", metavar="KEY", help="Check the signature with the Ed25519 key in this PEM file."),
    ] = None,
    seconds: Annotated[int, typer.Option(help="Give up after this many seconds.", min=1)] = SECONDS,
    json: AsJson = False,
) -> None:
    """Prove what a certificate states, with code that shares nothing with the library, and say what is only assumed.

    The exit code is 0 if all of it is proved, 1 if something is proved to be false, 2 if the file cannot be read, and 3
    if there is no proof for this kind of certificate.

    Example: [bold]lessnoise verify noisy.npy.certificate.json noisy.npy[/bold]
    """
    paths = [str(path) for path in (certificate, value) if path is not None]
    key = [] if public_key is None else ["--public-key", str(public_key)]
    raise typer.Exit(main([*key, "--seconds", str(seconds), *(["--json"] if json else []), "--", *paths]))

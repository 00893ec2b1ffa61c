"""``lessnoise explore``: the exact curves and the losses of all mechanisms, with sliders, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessnoise import files
from lessnoise.cli.options import AsJson, Force
from lessnoise.cli.output import console, tell
from lessnoise.explorer import ExplorerServer, LocalServer, page


def explore(
    port: Annotated[int, typer.Option(help="Port on this machine. 0 takes any free port.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    out: Annotated[Path | None, typer.Option(help="Write the page to this HTML file instead of serving it.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Explore exact privacy curves and losses with sliders, on a page in your browser.

    The page is served on this machine alone, until you press Ctrl-C. It computes most numbers itself; the server adds
    proved lower and upper ends and the least noise. With --out the page is written to a file that needs no server.

    Example: [bold]lessnoise explore --out explorer.html[/bold]
    """
    if out is not None:
        text = page().encode()
        files.write_together({out: lambda file: file.write(text)}, force)
        tell(json, {"wrote": str(out)}, f"wrote {out}")
        return
    with ExplorerServer(port) as server:
        serve_until_interrupted(server, "The explorer", browser, json)


def serve_until_interrupted(server: LocalServer, name: str, browser: bool, json: bool) -> None:
    """Say where the page is, open it, and serve it until Ctrl-C."""
    try:
        tell(json, {"address": server.address}, f"{name} is at {server.address} (Ctrl-C ends it).")
        if browser:
            import webbrowser

            webbrowser.open(server.address)
        server.serve_forever()
    except KeyboardInterrupt:
        if not json:
            console().print(f"\n{name} has ended.")

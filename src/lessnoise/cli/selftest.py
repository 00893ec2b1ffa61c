"""``lessnoise selftest``: statistical tests of the live noise generator."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lessnoise.cli.entry import EXIT_FAILED_CLAIM
from lessnoise.cli.options import AsJson
from lessnoise.cli.output import console, print_json
from lessnoise.noise import run_selftest


def selftest(
    seconds: Annotated[float, typer.Option(help="Time for the long test, of moments and tails.", min=0.1)] = 6.0,
    json: AsJson = False,
) -> None:
    """Test the live noise generator: moments, tails, independence, grid. Exit code 0: passed; 1: a test failed.

    Example: [bold]lessnoise selftest[/bold]
    """
    from rich.console import Console

    start = time.perf_counter()
    with Console(stderr=True).status("starting") as status:
        checks = run_selftest(seconds, progress=lambda stage: status.update(f"testing: {stage}"))
    elapsed = time.perf_counter() - start
    passed = all(check.passed for check in checks)
    if json:
        print_json({"passed": passed, "seconds": elapsed, "tests": [check.to_dict() for check in checks]})
    else:
        out = console()
        for check in checks:
            word = "[green]ok  [/]" if check.passed else "[bold red]FAIL[/]"
            out.print(f"{word} {check.name}: {check.seen:.3g} (allowed {check.allowed:.3g})")
        verdict = "[bold green]passed[/]" if passed else "[bold red]FAILED[/]: do not release anything with this build"
        out.print(f"{len(checks)} tests in {elapsed:.1f} s: {verdict}")
    if not passed:
        raise typer.Exit(EXIT_FAILED_CLAIM)

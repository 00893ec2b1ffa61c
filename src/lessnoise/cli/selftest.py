"""``lessnoise selftest``: statistical tests of the live noise generator, or of curves against the verifier."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

from lessnoise.audit import compare_curves, curves_summary
from lessnoise.cli.entry import EXIT_FAILED_CLAIM
from lessnoise.cli.options import AsJson
from lessnoise.cli.output import console, new_table, print_json, progress_bar
from lessnoise.noise import run_device_selftest, run_selftest


def selftest(
    seconds: Annotated[float, typer.Option(help="Seconds for the longest test, of moments and tails.", min=0.1)] = 6.0,
    device: Annotated[
        str | None,
        typer.Option(help="Test the noise engine on a device of PyTorch, such as cuda."),
    ] = None,
    curves: Annotated[
        bool,
        typer.Option(
            "--curves", help="Instead, compare privacy curves with those of the verifier, on random mechanisms."
        ),
    ] = False,
    count: Annotated[int, typer.Option(help="With --curves: number of random mechanisms.", min=1)] = 100,
    seed: Annotated[int | None, typer.Option(help="With --curves: seed of the random mechanisms.")] = None,
    json: AsJson = False,
) -> None:
    """Test the noise generator of this installation: moments, tails, independence and grid of its noise.

    With --device cuda the noise that a GPU draws is tested, and compared bit by bit with that of the CPU. With --curves
    the privacy curves are compared with those of the verifier, which computes proved enclosures by ball arithmetic. The
    exit code is 0 if all tests pass, and 1 if one fails.

    Example: [bold]lessnoise selftest[/bold]
    """
    if curves:
        _compare(count, seed, json)
        return
    from rich.console import Console

    start = time.perf_counter()
    with Console(stderr=True).status("starting") as status:

        def tell(stage: str) -> None:
            status.update(f"testing: {stage}")

        checks = (
            run_selftest(seconds, progress=tell)
            if device is None
            else run_device_selftest(device, seconds, progress=tell)
        )
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


def _compare(count: int, seed: int | None, as_json: bool) -> None:
    done = 0
    with progress_bar(quiet=as_json) as progress:

        def tell(_: object) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress("comparing", done, count)

        found = compare_curves(count, np.random.default_rng(seed), progress=tell)
    missed = [each for each in found if not each.meets]
    rows = curves_summary(found)
    if as_json:
        print_json({"passed": not missed, "kinds": rows, "missed": [each.to_dict() for each in missed]})
    else:
        _print(rows, len(found), len(missed))
    if missed:
        raise typer.Exit(EXIT_FAILED_CLAIM)


def _print(rows: list[dict[str, Any]], count: int, missed: int) -> None:
    names = ("mechanisms", "covered", "inside", "missed", "median s", "slowest s")
    shown = new_table("Privacy curves compared with the verifier's proved enclosures", ["kind"], names)
    for row in rows:
        numbers = [f"{row[name]}" for name in ("mechanisms", "covered", "inside", "missed")]
        times = [f"{row[name]:.3f}" for name in ("median_seconds", "slowest_seconds")]
        shown.add_row(row["kind"], *numbers, *times)
    out = console()
    out.print(shown)
    verdict = "[bold red]FAILED[/]: a curve contradicts its enclosure" if missed else "[bold green]passed[/]"
    out.print(f"{count} mechanisms: {verdict}")

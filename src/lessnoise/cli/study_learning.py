"""``lessnoise study learning``: networks trained privately, as published and on equal terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise.cli.app import AsJson, Force, console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.studies.learning.results import Row


def learning(
    rerun: Annotated[bool, typer.Option("--rerun", help="Train again instead of reading the stored results.")] = False,
    recipe: Annotated[
        str, typer.Option(help="What to train again: tutorial (the paper's lines) or strong.")
    ] = "tutorial",
    only: Annotated[
        list[str] | None, typer.Option(help="mnist or cifar10; may be given twice. [default: both]")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs to train again. [default: the paper's]")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds to train again with.")] = 3,
    records: Annotated[
        int | None, typer.Option(help="Train again with the first so many records alone, for a trial.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu. [default: cuda if there is one]")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with MNIST and CIFAR-10. Left out: the folder that $LESSNOISE_DATA names, else a download "
            "from the public sources.",
            show_default=False,
        ),
    ] = None,
    membership: Annotated[
        bool, typer.Option("--membership", help="Also attack one step of each kind: was the record in the batch?")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page, the pictures and the numbers.")] = Path(
        "lessnoise-learning"
    ),
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study III of the R1SMG paper: MNIST and CIFAR-10 networks trained with DP-SGD and with R1SMG.

    Reads the results of full runs that come with the library, or trains again, and puts the exact privacy of every line
    beside its accuracy.

    Example: [bold]lessnoise study learning --out learning[/bold]
    """
    from lessnoise import files, validation
    from lessnoise.report.html import is_ours
    from lessnoise.studies.learning import page, results

    validation.choice("recipe", recipe, ("tutorial", "strong"))
    chosen = only or ["mnist", "cifar10"]
    for name in chosen:
        validation.choice("only", name, ("mnist", "cifar10"))
    index = out / "index.html"
    force = force or is_ours(index)
    if out.exists():
        files.check_free([out / name for name in page.NAMES], force)
    if rerun:
        _train_again(recipe, chosen, epochs, seeds, records, device, data, out, quiet=json)
    found = []
    if membership:
        from lessnoise.studies.learning.membership import demonstration

        found = demonstration()

    def read_result(name: str) -> dict[str, Any] | None:
        return results.read(name, out if rerun else None)

    contents = page.learning_files(read_result, found)
    files.write_folder(out, contents, force)
    if json:
        print_json(page.numbers(read_result, found))
        return
    _print(results.table(read_result))
    for one in found:
        console().print(page.membership_words(one))
    console().print(f"wrote {index} and {len(contents) - 1} files beside it: open the page in a browser", markup=False)


def _train_again(
    recipe: str,
    chosen: list[str],
    epochs: int | None,
    seeds: int,
    records: int | None,
    device: str | None,
    data: Path | None,
    out: Path,
    *,
    quiet: bool,
) -> None:
    from lessnoise import validation
    from lessnoise.errors import InvalidInput

    try:
        import torch  # noqa: F401
    except ImportError:
        raise InvalidInput("--rerun needs PyTorch: install it with pip install 'lessnoise[learn]'.") from None
    from lessnoise.studies.learning.run import run_study

    options = "".join(f" --only {name}" for name in chosen) + ("" if epochs is None else f" --epochs {epochs}")
    options += "" if records is None else f" --records {records}"
    run_study(
        ["strong"] if recipe == "strong" else chosen,
        data=data,
        out=out,
        epochs=None if epochs is None else validation.whole_number("epochs", epochs),
        seeds=validation.whole_number("seeds", seeds),
        device=device,
        records=None if records is None else validation.whole_number("records", records),
        strong=tuple(chosen),
        command=f"lessnoise study learning --rerun --recipe {recipe}{options} --seeds {seeds}",
        report=(lambda line: None) if quiet else typer.echo,
    )


def _print(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from lessnoise.studies.learning.results import NAMES

    if not rows:
        console().print("There are no results yet: train with --rerun.")
    table = Table(title="Accuracy after the last epoch, and what each line really guarantees")
    for title in (
        "data",
        "claimed epsilon",
        "method",
        "exact guarantee",
        "test",
        "over seeds",
        "train",
        "95% at epoch",
    ):
        table.add_column(title)
    for row in rows:
        table.add_row(
            row.data,
            "" if row.epsilon is None else f"{row.epsilon:g}",
            NAMES[row.method],
            row.guarantee,
            f"{row.accuracy:.2%}",
            f"{row.spread[0]:.2%} to {row.spread[1]:.2%}",
            f"{row.train_accuracy:.2%}",
            "" if row.first_checkpoint is None else f"{row.first_checkpoint}",
        )
    if rows:
        console().print(table)

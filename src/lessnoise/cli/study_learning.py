"""``lessnoise study learning``: networks trained privately, as published and on equal terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.app import AsJson, Force, console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.studies.learning.results import Row

FILES = ("learning.svg", "numbers.json")


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
    device: Annotated[str | None, typer.Option(help="cuda or cpu. [default: cuda if there is one]")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with MNIST and CIFAR-10. [default: $LESSNOISE_DATA]", show_default=False)
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch what the folder lacks from public sources.")
    ] = False,
    membership: Annotated[
        bool, typer.Option("--membership", help="Also attack one step of each kind: was the record in the batch?")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the numbers.")] = Path("lessnoise-learning"),
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study III of the R1SMG paper: MNIST and CIFAR-10 networks trained with DP-SGD and with R1SMG.

    Reads the results of full runs that come with the library, or trains again, and puts the exact privacy of every line
    beside its accuracy.

    Example: [bold]lessnoise study learning --out learning[/bold]
    """
    from lessnoise import files, validation
    from lessnoise.studies.learning import results
    from lessnoise.studies.learning.pictures import learning_svg

    validation.choice("recipe", recipe, ("tutorial", "strong"))
    chosen = only or ["mnist", "cifar10"]
    for name in chosen:
        validation.choice("only", name, ("mnist", "cifar10"))
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / name for name in FILES]
    files.check_free(paths, force)
    if rerun:
        _train_again(recipe, chosen, epochs, seeds, device, data, download, out, quiet=json)
    folder = out if rerun else None
    rows = results.table(lambda name: results.read(name, folder))
    numbers = {"rows": [row.to_dict() for row in rows]}
    if membership:
        from lessnoise.studies.learning.membership import demonstration

        numbers["membership"] = [found.to_dict() for found in demonstration()]
    picture = learning_svg(lambda name: results.read(name, folder))
    text = _text(numbers)
    files.write_together(
        {paths[0]: lambda file: file.write(picture), paths[1]: lambda file: file.write(text.encode())}, force=force
    )
    if json:
        print_json(numbers)
    else:
        _print(rows, numbers, paths)


def _train_again(
    recipe: str,
    chosen: list[str],
    epochs: int | None,
    seeds: int,
    device: str | None,
    data: Path | None,
    download: bool,
    out: Path,
    *,
    quiet: bool,
) -> None:
    import os

    from lessnoise import validation
    from lessnoise.errors import InvalidInput
    from lessnoise.studies.learning.data import VARIABLE, load

    try:
        import torch  # noqa: F401
    except ImportError:
        raise InvalidInput("--rerun needs PyTorch: install it with pip install 'lessnoise[learn]'.") from None
    from lessnoise.studies.learning.run import run_study

    place = data if data is not None else Path(os.environ.get(VARIABLE, ""))
    for name in chosen:
        load(name, place if data is not None or VARIABLE in os.environ else None, download=download)
    options = "".join(f" --only {name}" for name in chosen) + ("" if epochs is None else f" --epochs {epochs}")
    run_study(
        ["strong"] if recipe == "strong" else chosen,
        data=place,
        out=out,
        epochs=None if epochs is None else validation.whole_number("epochs", epochs),
        seeds=validation.whole_number("seeds", seeds),
        device=device,
        strong=tuple(chosen),
        command=f"lessnoise study learning --rerun --recipe {recipe}{options} --seeds {seeds}",
        report=(lambda line: None) if quiet else typer.echo,
    )


def _text(numbers: object) -> str:
    import json

    return json.dumps(numbers, indent=1) + "\n"


def _print(rows: Sequence[Row], numbers: dict[str, list[dict[str, object]]], paths: list[Path]) -> None:
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
    for found in numbers.get("membership", []):
        console().print(
            f"one step of {found['method']}: the attack guesses right at least {found['right_guesses_proved']:.2%} of "
            f"the time; no attack can exceed {found['right_guesses_limit']:.2%}"
        )
    console().print(f"wrote {', '.join(str(path) for path in paths)}")

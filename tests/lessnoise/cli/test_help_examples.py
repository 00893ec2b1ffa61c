"""The examples of the help run as they stand, one after the other, in a folder with the files that they name."""

import re
import shlex
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from lessnoise.cli import app

ELSEWHERE = {
    "claims": "test_commands.py runs it",
    "frontier": "test_commands.py runs it, and it takes long",
    "selftest": "it takes as long as its tests need",
    "ledger serve": "it serves until Ctrl-C",
    "ledger migrate": "it needs a server",
}
"""Examples that are not run here, and why."""

CODES = {"audit": 1, "check": 1}
"""Their examples show a claim that fails."""

ORDER = ("plan", "release", "ledger create", "stream create")
"""What makes the files that other examples read comes first."""


OTHERS = {point.name for point in metadata.entry_points(group="lessnoise.commands")}
"""Commands that other packages add, which are there or not."""


def commands(command, before=()):
    inner = {name: one for name, one in getattr(command, "commands", {}).items() if name not in OTHERS}
    return [pair for name, one in inner.items() for pair in commands(one, (*before, name))] or [
        (" ".join(before), command)
    ]


def examples():
    found = []
    for name, command in commands(typer.main.get_command(app)):
        text = " ".join(command.help.split())
        lines = re.findall(r"Example[^:]*: \[bold\]lessnoise (.*?)\[/bold\]", text)
        assert lines, name
        assert len(lines) == text.count("[bold]lessnoise"), name
        found += [(name, line) for line in lines if name not in ELSEWHERE]
    return sorted(found, key=lambda pair: (pair[0] not in ORDER, ORDER.index(pair[0]) if pair[0] in ORDER else 0))


@pytest.mark.slow
def test_every_example_of_the_help_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("counts.npy", rng.integers(0, 50, 12))
    places = {"Lon": rng.uniform(-74.05, -73.75, 300), "Lat": rng.uniform(40.6, 40.9, 300)}
    pd.DataFrame({**places, "kind": rng.choice(["bus", "taxi"], 300)}).to_parquet("trips.parquet")
    people = {"city": rng.choice(["Oslo", "Bergen"], 300), "income": rng.uniform(0, 200_000, 300)}
    pd.DataFrame(people).to_csv("people.csv", index=False)
    plan = "plan --times 12 --shape 12 --changes counts --epsilon 0.5 --delta 1e-7 --out year.json"
    for name, line in [("plan", plan), *examples()]:
        if "postgresql://" in line and "roles" not in line:
            continue
        result = CliRunner().invoke(app, shlex.split(line.split(" | ")[0]))
        assert result.exit_code == CODES.get(name, 0), f"{line}: {result.output}"


def test_examples_that_are_not_run_are_few_and_exist():
    names = {name for name, _ in commands(typer.main.get_command(app))}
    assert set(ELSEWHERE) | set(CODES) | set(ORDER) <= names


def test_help_lists_every_command_by_its_name_and_shows_defaults():
    """A default in square brackets would be taken for a style, and vanish; so a command without a name."""
    top = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    for name in ("audit", "plan", "ledger", "stream"):
        assert re.search(rf"│ {name} +\w", top), name
    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            assert "[default" not in (getattr(parameter, "help", "") or ""), (name, parameter.name)
    shown = CliRunner().invoke(app, ["query", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    assert "Default: duckdb." in shown

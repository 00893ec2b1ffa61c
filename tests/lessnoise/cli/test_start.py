"""The command line before it does anything: version, help, completion, and what it need not load."""

import dataclasses
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise.mechanism.catalogue import CATALOGUE

HEAVY = {"scipy", "matplotlib", "numba", "duckdb", "pandas", "pyarrow", "sklearn", "torch", "pyspark", "dask"}


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def paths(command, before=()):
    inner = getattr(command, "commands", {})
    return [path for name, one in inner.items() for path in paths(one, (*before, name))] if inner else [before]


COMMANDS = paths(typer.main.get_command(app))


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        "import lessnoise",
        "import contextlib, sys, lessnoise.cli\nsys.argv = ['lessnoise', '--help']\n"
        "with contextlib.suppress(SystemExit): lessnoise.cli.run()",
    ],
)
def test_heavy_libraries_are_loaded_when_needed_and_not_before(start):
    result = python(f"{start}\nimport sys\nprint('loaded:', *sys.modules)")
    loaded = result.stdout.split("loaded:")[1].split()
    assert "lessnoise" in loaded
    assert not HEAVY & set(loaded)


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"lessnoise {ln.__version__}\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_json_and_an_example_that_names_it(command):
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert re.search(rf"Example:\s+lessnoise\s+{' '.join(command)}", re.sub(r"\s+", " ", result.stdout))


@pytest.mark.parametrize(
    ("command", "elsewhere"),
    [
        *((command, ()) for command in ("check", "audit", "plan", "claims")),
        ("release", ("shape", "integer")),
        ("ledger spend", ("neighbours",)),
    ],
)
def test_a_command_has_an_option_for_every_field_of_a_request(command, elsewhere):
    found = typer.main.get_command(app)
    for name in command.split():
        found = found.get_command(None, name)
    names = {parameter.name for parameter in found.params}
    fields = {field.name for field in dataclasses.fields(ln.Request)} - {"moved"}  # which only a query can know
    assert fields & names == fields - set(elsewhere)


def complete(*words):
    """What the shell would offer after these words."""
    line = ["lessnoise", *words]
    result = python(
        "import sys; sys.argv = ['lessnoise']; from lessnoise.cli import run; run()",
        _LESSNOISE_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(line),
        COMP_CWORD=str(len(line) - 1),
    )
    assert result.stderr == ""
    return result.stdout.split()


@pytest.mark.slow
def test_shells_complete_commands_mechanisms_and_values():
    assert {"plan", "check", "release"} <= set(complete(""))
    assert complete("check", "analytic") == ["analytic-gaussian"]
    assert set(complete("check", "")) == set(CATALOGUE)
    assert complete("release", "a.npy", "b.npy", "--mechanism", "bes") == ["best"]
    assert complete("check", "l2", "--objective", "q") == ["quantile:0.95"]


@pytest.mark.slow
def test_completion_can_be_installed():
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    assert "--install-completion" in result.stdout
    script = python(
        "import sys; sys.argv = ['lessnoise']; from lessnoise.cli import run; run()", _LESSNOISE_COMPLETE="source_bash"
    )
    assert "_LESSNOISE_COMPLETE" in script.stdout

"""The help of the commands that the paper adds."""

import re

import pytest
from typer.testing import CliRunner

from lessnoise.cli import app


@pytest.mark.parametrize("command", ["demo", "reproduce", "study uber", "study pca", "study learning"])
def test_help_has_an_example(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout


def test_help_lists_commands_of_other_packages_by_their_names():
    top = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    for name in ("demo", "study", "reproduce"):
        assert re.search(rf"│ {name} +[A-Z]", top), name


def test_paragraphs_of_help_fill_narrow_terminals():
    """A docstring's own line ends are for readers of the source."""
    result = CliRunner().invoke(app, ["study", "pca", "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"})
    described = result.output.split("good for.")[1].split("Example:")[0]
    lines = [line.strip() for line in described.strip().splitlines()]
    assert len(lines) == 5
    assert min(map(len, lines[:-1])) > 55

"""The command ``lessnoise demo``."""

import json

import pytest
from typer.testing import CliRunner

from lessnoise.cli import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_demo_writes_a_page_and_its_numbers_and_may_be_repeated(tmp_path):
    folder = tmp_path / "made" / "here"
    for _ in range(2):
        result = invoke("demo", "--out", folder)
        assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "numbers.json"]
    numbers = json.loads((folder / "numbers.json").read_text())
    assert [row["verdict"]["holds"] for row in numbers["rows"]].index(False) >= 7
    assert "fails" in result.stdout


def test_demo_leaves_foreign_files_alone(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    result = invoke("demo", "--out", tmp_path)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]

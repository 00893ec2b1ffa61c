"""The command line, in a folder of its own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from lessnoise.cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command and checks its exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == code, result.output
        return result

    return call

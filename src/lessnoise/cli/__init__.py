"""The command line: ``lessnoise plan | check | release | demo``."""

from lessnoise.cli.app import app, run

__all__ = ["app", "run"]

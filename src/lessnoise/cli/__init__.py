"""The command line, and what commands of other packages are made with: options, output, progress."""

from lessnoise.cli.app import app, run
from lessnoise.cli.options import AsJson, Force
from lessnoise.cli.output import console, print_json, progress_bar, time_left_bars

__all__ = ["AsJson", "Force", "app", "console", "print_json", "progress_bar", "run", "time_left_bars"]

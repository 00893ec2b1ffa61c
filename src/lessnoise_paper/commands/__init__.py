"""The paper's commands, which reach the command line through the entry-point group ``lessnoise.commands``."""

from lessnoise_paper.commands.demo import demo
from lessnoise_paper.commands.reproduce import reproduce
from lessnoise_paper.commands.study import study

__all__ = ["demo", "reproduce", "study"]

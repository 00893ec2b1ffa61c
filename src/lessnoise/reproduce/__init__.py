"""Every figure and table of the R1SMG paper and ours beside them, made by one command into one report."""

from lessnoise.reproduce.item import Made, Picture, Section, Settings, Words, Work
from lessnoise.reproduce.run import Outcome, Run, reproduce

__all__ = ["Made", "Outcome", "Picture", "Run", "Section", "Settings", "Words", "Work", "reproduce"]

"""The R1SMG paper (Ji & Li 2024): its figures, tables and case studies, with the exact privacy of each."""

from lessnoise_paper.model import Made, Picture, Section, Settings, Words, Work
from lessnoise_paper.run import Outcome, Run, reproduce

__all__ = ["Made", "Outcome", "Picture", "Run", "Section", "Settings", "Words", "Work", "reproduce"]

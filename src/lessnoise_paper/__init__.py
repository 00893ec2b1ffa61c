"""The R1SMG paper (Ji & Li 2024): its figures, tables and case studies, with the exact privacy of each."""

from lessnoise_paper.model import Experiment, Outcome, Page, Picture, Result, Section, Selection, Settings, Words
from lessnoise_paper.run import Run, reproduce, single_page

__all__ = [
    "Experiment",
    "Outcome",
    "Page",
    "Picture",
    "Result",
    "Run",
    "Section",
    "Selection",
    "Settings",
    "Words",
    "reproduce",
    "single_page",
]

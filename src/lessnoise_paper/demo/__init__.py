"""The demonstration: every mechanism on one synthetic city."""

from lessnoise_paper.demo.page import page_html, write_page
from lessnoise_paper.demo.run import DemoResult, DemoRow, Reconstruction, run_demo

__all__ = ["DemoResult", "DemoRow", "Reconstruction", "page_html", "run_demo", "write_page"]

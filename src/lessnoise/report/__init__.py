"""Results made visible: the demonstration, its pictures and its page."""

from lessnoise.report.demo import DemoResult, DemoRow, Reconstruction, run_demo
from lessnoise.report.page import page_html, write_page

__all__ = ["DemoResult", "DemoRow", "Reconstruction", "page_html", "run_demo", "write_page"]

"""Tests keep their cached answers to themselves: no test reads or fills the user's own cache folder."""

import importlib.util
import os
import tempfile

os.environ["LESSNOISE_CACHE"] = os.environ.get("PYTEST_LESSNOISE_CACHE") or tempfile.mkdtemp(prefix="lessnoise-tests-")
os.environ["PYTEST_LESSNOISE_CACHE"] = os.environ["LESSNOISE_CACHE"]  # shared with the worker processes

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("opacus") is None:  # the extra "learn"
    collect_ignore = [
        *(f"src/lessnoise/learn/{name}.py" for name in ("accountant", "loader", "noise", "optimizer", "privacy_engine")),
        *(f"src/lessnoise/studies/learning/{name}.py" for name in ("networks", "trainer", "features", "strong")),
        "docs/learning.md",
    ]

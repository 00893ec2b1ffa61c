"""Tests keep their cached answers to themselves: no test reads or fills the user's own cache folder."""

import os
import tempfile

os.environ["LESSNOISE_CACHE"] = os.environ.get("PYTEST_LESSNOISE_CACHE") or tempfile.mkdtemp(prefix="lessnoise-tests-")
os.environ["PYTEST_LESSNOISE_CACHE"] = os.environ["LESSNOISE_CACHE"]  # shared with the worker processes

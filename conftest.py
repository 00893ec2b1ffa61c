"""What all tests share: a cache of their own, the same examples in each run, and pages that say what they need.

Examples in docstrings and pages cannot carry a mark, so those that take long are named here.
"""

import importlib.util
import os
import re
import tempfile

import pytest
from hypothesis import settings

# The user's own cache folder is neither read nor filled.
os.environ["LESSNOISE_CACHE"] = os.environ.get("PYTEST_LESSNOISE_CACHE") or tempfile.mkdtemp(prefix="lessnoise-tests-")
os.environ["PYTEST_LESSNOISE_CACHE"] = os.environ["LESSNOISE_CACHE"]  # shared with the worker processes

# The command line's words are the same in every terminal and on every build server.
for name in ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
os.environ["COLUMNS"] = "80"

# A property test that fails, fails for everyone;
# `HYPOTHESIS_PROFILE=explore` looks for new examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

SLOW_EXAMPLES = {
    "docs/guide/least-noise.md::least-noise.md",
    "docs/guide/pca.md::pca.md",
    "docs/studies/learning.md::learning.md",
    "docs/tutorial.md::tutorial.md",
    "src/lessnoise/mechanism/least/builder.py::lessnoise.mechanism.least.builder.loss_lower_bound",
    "src/lessnoise/noise/selftest.py::lessnoise.noise.selftest.run_selftest",
}

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("opacus") is None:  # the extra "learn"
    collect_ignore = [
        *(
            f"src/lessnoise/learn/{name}.py"
            for name in (
                *("batch", "gradients", "loader", "opacus_accountant"),
                *("optimizer", "privacy_engine", "watch"),
            )
        ),
        *(f"src/lessnoise_paper/training/{name}.py" for name in ("networks", "trainer", "features", "strong")),
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow examples, and skip a page whose comment ``<!-- needs: torch, opacus -->`` names a missing module."""
    for item in items:
        if item.nodeid in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if item.path.suffix == ".md":
            missing = [name for name in needs(item.path.read_text(encoding="utf-8")) if not _importable(name)]
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


def needs(text: str) -> list[str]:
    """The modules that a page says it needs."""
    comment = re.search(r"<!-- needs: ([\w., ]+) -->", text)
    return [] if comment is None else re.split(r",\s*", comment[1].strip())


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False

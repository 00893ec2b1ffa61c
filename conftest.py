"""What all tests share: a cache of their own, and property tests that take the same examples in each run."""

import os
import tempfile

from hypothesis import settings

# The user's own cache folder is neither read nor filled.
os.environ["LESSNOISE_CACHE"] = os.environ.get("PYTEST_LESSNOISE_CACHE") or tempfile.mkdtemp(prefix="lessnoise-tests-")
os.environ["PYTEST_LESSNOISE_CACHE"] = os.environ["LESSNOISE_CACHE"]  # shared with the worker processes

# A property test that fails, fails for everyone;
# `HYPOTHESIS_PROFILE=explore` looks for new examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

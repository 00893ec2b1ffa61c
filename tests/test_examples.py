"""The example files run and say what they should."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def other_libraries():
    spec = importlib.util.spec_from_file_location("audit_other_libraries", EXAMPLES / "audit_other_libraries.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "library"), [("numpy", "numpy"), ("diffprivlib", "diffprivlib"), ("opendp", "opendp")]
)
def test_audits_of_other_libraries(other_libraries, part, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what others' imports warn of is theirs
        pytest.importorskip(library, reason=f"{library} is not installed: pip install {library}", exc_type=ImportError)
        audits = getattr(other_libraries, f"audit_{part}")(np.random.default_rng(0))
    assert {holds for _, holds, _ in audits} == {True, False}
    for name, holds, report in audits:
        assert report.refuted != holds, f"{name}: {report}"

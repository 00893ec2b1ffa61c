"""The example files run and say what they should."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def other_libraries():
    return example("audit_other_libraries")


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


@pytest.mark.slow
def test_lora_fine_tuning_is_private_and_learns(capsys):
    torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
    pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        accuracy = example("lora").main(records=2000, epochs=4, public_epochs=3, epsilon=50.0)
    said = capsys.readouterr().out
    before = float(said.split("before fine-tuning ")[1].split("%")[0]) / 100
    assert accuracy > before + 0.05
    assert "1,858 of 20,610 weights are trained" in said
    assert "step 16 of 16: epsilon between 49" in said

"""Wrong arguments in Python: one sentence with the name and what to do, before anything is drawn or spent."""

import decimal
import json

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.mechanism.catalogue import find_mechanism

GOAL = {"epsilon": 1, "delta": 1e-6, "sensitivity": 1, "shape": 3}
NUMBERS = ["1", True, np.True_, None, 1j, np.array([1.0]), np.array(0.5), [0.5], decimal.Decimal(1)]


@pytest.fixture(scope="module")
def mechanism():
    return ln.analytic_gaussian(**GOAL)


def refused(call, *words):
    with pytest.raises(ln.LessnoiseError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert ":" in text  # what is wrong, then what to do
    for word in words:
        assert word in text


@pytest.mark.parametrize("name", ["epsilon", "delta", "sensitivity"])
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("builder", [ln.analytic_gaussian, ln.l2_mechanism, ln.discrete_gaussian, ln.least_noise])
def test_targets_of_the_wrong_type(builder, name, value):
    refused(lambda: builder(**{**GOAL, name: value}), f"{name}={value!r} is not a number")


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_points_of_curves_of_the_wrong_type(mechanism, value):
    refused(lambda: mechanism.delta(value), f"epsilon={value!r} is not a number")
    refused(lambda: mechanism.epsilon(value), f"delta={value!r} is not a number")
    refused(lambda: mechanism.repeat(2).delta(value), f"epsilon={value!r} is not a number")
    refused(lambda: mechanism.loss_quantile(value), f"q={value!r} is not a number")
    refused(lambda: ln.Guarantee(value, 0), f"epsilon={value!r} is not a number")


@pytest.mark.parametrize("shape", ["3", True, None, 3.0, (3, 0), (3, True), (3, "4"), {3}, np.array([3, 4])], ids=repr)
def test_shapes_of_the_wrong_type(shape):
    refused(lambda: ln.analytic_gaussian(**{**GOAL, "shape": shape}), "shape=")


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0, 3.0]})


def sparse():
    return pytest.importorskip("scipy.sparse").csr_array(np.ones((1, 3)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: "abc", "value.dtype=<U3 is not numeric: convert the text to numbers first"),
        (lambda: ["1", "2", "3"], "value.dtype=<U1 is not numeric: convert the text"),
        (lambda: None, "value.dtype=object is not numeric"),
        (lambda: np.ones(3) * 1j, "value.dtype=complex128 is not numeric: release the real and the imaginary part"),
        (lambda: np.array([1, 2, None], dtype=object), "value.dtype=object is not numeric"),
        (lambda: np.array([True, False, True]), "value.dtype=bool is not numeric: count with .astype(int) first"),
        (lambda: np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "value.dtype=datetime64[D] is not numeric"),
        (lambda: np.zeros(3, dtype=[("a", float)]), "is not numeric"),
        (lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "value has 1 masked entries"),
        (sparse, "a sparse matrix becomes an array by .toarray()"),
        (pandas_frame, "value.shape=(3, 1) differs from the mechanism's shape=(3,)"),
        (lambda: np.array(1.0), "value.shape=() differs"),
        (lambda: np.array([]), "value.shape=(0,) differs"),
        (lambda: [[1], [2, 3]], "value is not a rectangular array"),
        (lambda: (i for i in range(3)), "value.dtype=object is not numeric"),
        (lambda: {1, 2, 3}, "value.dtype=object is not numeric"),
        (lambda: [1.0, np.nan, 2.0], "value[1]=nan is not finite"),
        (lambda: [1.0, 2.0, -np.inf], "value[2]=-inf is not finite"),
    ],
)
@pytest.mark.parametrize("name", ["analytic-gaussian", "discrete-gaussian", "laplace"])
def test_values_that_cannot_be_released(name, make, words, tmp_path):
    from lessnoise import Request

    built = find_mechanism(name).build(Request(1.0, 1e-6, 1.0, (3,), integer=True))
    ledger = ln.Ledger.open(tmp_path / "l", epsilon=5, delta=1e-5)
    refused(lambda: built.release(make(), ledger=ledger), words)
    assert ledger.records() == []


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.ma.array([1.0, 2.0, 3.0]),
        np.ones(3, dtype=np.float16),
        np.ones(3, dtype=np.uint8),
    ],
    ids=repr,
)
def test_values_that_can(mechanism, value):
    assert mechanism.release(value).value.shape == (3,)


def test_a_column_of_a_table_can_be_released(mechanism):
    assert mechanism.release(pandas_frame()["a"]).value.shape == (3,)


def test_other_arguments_of_a_release(mechanism):
    value = np.ones(3)
    refused(lambda: mechanism.release(value, 7), "rng=7 is not a NumPy generator")
    refused(lambda: mechanism.release(value, np.random.RandomState(1)), "is not a NumPy generator")
    refused(lambda: mechanism.release(value, ledger="l.ledger"), "ledger='l.ledger' is not a ledger", "Ledger.open")
    refused(lambda: mechanism.release(value, out=[0, 0, 0]), "out of type list is not a NumPy array")
    refused(lambda: mechanism.release(value, threads="2"), "threads='2' is not a whole number")
    refused(lambda: mechanism.release(value, partition="a"), "partition='a' is of no use without a ledger")


def test_words_near_the_right_ones():
    refused(lambda: ln.analytic_gaussian(**GOAL, neighbours="replac"), "perhaps 'replace' is meant")
    refused(lambda: ln.r1smg(**GOAL, calibration="exat"), "perhaps 'exact' is meant")
    refused(lambda: find_mechanism("gaussian-analytic"), "mechanism='gaussian-analytic' is not known")
    refused(lambda: ln.least_noise(**GOAL, objective="median"), "objective='median' is not known")


@pytest.mark.parametrize("text", ["{", "[]", "", "null", "3", None, 7, '{"schema": 1}', '{"schema": 99, "parts": []}'])
def test_descriptions_that_are_not_ours(text):
    refused(lambda: ln.Mechanism.from_json(text))
    refused(lambda: ln.Composition.from_json(text))


def test_a_description_of_another_version(mechanism):
    values = {**mechanism.to_dict(), "schema": 99}
    refused(lambda: ln.Mechanism.from_json(json.dumps(values)), "schema=99", "another version")
    refused(lambda: ln.Mechanism.from_dict(7), "description=7 is not a dict")


@pytest.mark.parametrize("path", [3, None, ["a"]])
def test_ledgers_of_no_path(path):
    refused(lambda: ln.Ledger.open(path, epsilon=1, delta=1e-6), f"path={path!r} is not a path")


def test_brackets_of_no_numbers():
    refused(lambda: ln.Bracket("a", "b"), "lower='a' is not a number")
    refused(lambda: ln.Bracket(0.0, None), "upper=None is not a number")


def test_masked_rows_are_not_counted_in_silence():
    query = ln.Histogram.grid(["x"], bins=(2,), bounds=((0, 1),))
    hidden = np.ma.array([0.1, 0.2, 0.9], mask=[0, 0, 1])
    refused(lambda: query.answer({"x": hidden}), "data['x'] has 1 masked entries")
    refused(lambda: query.answer(hidden.reshape(3, 1)), "data has 1 masked entries")
    refused(lambda: ln.Histogram.grid(["x"], bins=2, bounds=((0, 1),)), "bins=2 must have one part", "bins=(89,)")

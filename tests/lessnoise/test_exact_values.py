"""Nothing is rounded between the caller's value and the noise: exact, or refused. Numbers go to the safe side."""

import array
import math
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import InvalidInput, Request, validation
from lessnoise.cli import app
from lessnoise.mechanism.families.discrete_sampler import integer_array
from lessnoise.noise import Independent, Real, Stream, add_noise, normal

BIG = 2**60 + 1
WIDE = np.longdouble(1) + np.longdouble(2) ** -60
HAS_WIDE_FLOATS = np.finfo(np.longdouble).nmant > 52


# Values.


def test_whole_numbers_beyond_float64_do_not_move_apart():
    """The attack: entries near 2^56 that differ by 1 lie 16 apart, or 0, once they are float64."""
    count = 100_000
    value = np.full(count, 2**56 + 8)
    assert np.linalg.norm((value + 1).astype(float) - value.astype(float)) > 15 * math.sqrt(count)
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=math.sqrt(count), shape=count)
    for one in (value, value + 1, value.astype(np.uint64), -value):
        with pytest.raises(InvalidInput, match=r"value\[0\]=-?72057594037927\d+ is beyond 2\^53"):
            mechanism.release(one)


def nasty():
    """Values that NumPy would round to a common type, or to float64."""
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    yield "int64", np.array([BIG, 1])
    yield "uint64", np.array([2**63 + 1, 1], dtype=np.uint64)
    yield "big-endian", np.array([BIG, 1], dtype=">i8")
    yield "list", [BIG, 1]
    yield "mixed list", [BIG, 0.5]
    yield "negative", [-BIG, 0.5]
    yield "signed and unsigned", [2**63, -1]
    yield "beyond 64 bits", [2**70 + 1, 0.5]
    yield "only beyond 64 bits", [2**70 + 1, 2**71]
    yield "NumPy scalars", (np.int64(BIG), np.float32(0.5))
    yield "deque", deque([BIG, 0.5])
    yield "array", array.array("q", [BIG, 1])
    yield "range", range(BIG, BIG + 2)
    yield "pandas", pandas.Series([BIG, 1])
    yield "pandas nullable", pandas.Series([BIG, 1], dtype="Int64")
    yield "pandas missing", pandas.Series([BIG, None], dtype="Int64")
    yield "pandas Arrow", pandas.Series([BIG, 1], dtype="int64[pyarrow]")
    yield "Polars", polars.Series([BIG, 1])
    yield "Polars null", polars.Series([BIG, None])
    yield "Polars decimal", polars.Series([Decimal("0.1"), Decimal("0.2")])
    yield "Polars 128", polars.Series([BIG, 1], dtype=polars.Int128)
    yield "Arrow", pyarrow.array([BIG, 1])
    yield "Arrow null", pyarrow.chunked_array([[BIG, None]])
    yield "Arrow decimal", pyarrow.array([Decimal("0.1"), Decimal("0.2")])
    yield "object", np.array([BIG, 1], dtype=object)
    yield "decimals", [Decimal("0.1"), 1.0]
    yield "fractions", [Fraction(1, 3), 1.0]
    yield "complex", [1 + 2j, 1]
    yield "dates", np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    yield "spans", np.array([1, 2], dtype="timedelta64[s]")
    yield "bool", np.array([True, False])
    yield "records", np.zeros(2, dtype=[("a", "f8")])
    yield "masked", np.ma.array([1.0, 2.0], mask=[True, False])
    if HAS_WIDE_FLOATS:
        yield "longdouble", np.array([WIDE, 1])
        yield "huge longdouble", np.array([np.longdouble("1e4000"), 1])
        yield "list of longdouble", [WIDE, 1.0]


def nasty_tables():
    """The same with two columns or rows of different types."""
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = {"a": np.array([BIG, 1]), "b": np.array([0.5, 1.0])}
    yield "pandas", pandas.DataFrame(columns)
    yield "pandas unsigned", pandas.DataFrame({"a": [BIG, 1], "b": np.array([2**63, 1], dtype=np.uint64)})
    yield "pandas nullable", pandas.DataFrame({"a": pandas.array([BIG, 1], dtype="Int64"), "b": [0.5, 1.0]})
    yield (
        "pandas twice",
        pandas.concat([pandas.Series([BIG, 1], name="a"), pandas.Series([0.5, 1.0], name="a")], axis=1),
    )
    yield "Polars", polars.DataFrame(columns)
    yield "Arrow", pyarrow.table(columns)
    yield "Arrow batch", pyarrow.record_batch(columns)
    yield "arrays", list(columns.values())
    yield "lists", [[BIG, 1], [0.5, 1.0]]
    yield "series", [pandas.Series(values) for values in columns.values()]
    yield "Polars series", [polars.Series(values) for values in columns.values()]
    yield "masked rows", [np.ma.array([1.0, 2.0], mask=[True, False]), np.array([0.5, 1.0])]


@pytest.mark.parametrize("name", [name for name, _ in nasty()])
def test_a_value_that_float64_would_round_is_refused(name):
    value = dict(nasty())[name]
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1e6, shape=2)
    with pytest.raises(InvalidInput) as caught:
        mechanism.release(value)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).startswith("value")


@pytest.mark.parametrize("name", [name for name, _ in nasty_tables()])
def test_a_table_that_numpy_would_round_to_one_type_is_refused(name):
    value = dict(nasty_tables())[name]
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1e6, shape=(2, 2))
    with pytest.raises(InvalidInput, match=r"^value") as caught:
        mechanism.release(value)
    assert str(caught.value).count(". ") == 0


def test_exact_values_of_every_type_are_released():
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1e6, shape=2)
    small = [3, 5]
    for value in (
        small,
        [3, 5.0],
        [np.int64(3), np.float16(5)],
        np.array(small, dtype=np.uint64),
        np.array(small, dtype=np.float16),
        np.array(small, dtype=">f8"),
        np.array(small, dtype=np.longdouble),
        np.ma.array(small),
        pandas.Series(small, dtype="Int64"),
        polars.Series(small),
        pyarrow.array(small),
        [2**53, 0.5],
        np.array([-(2**53), 2**53]),
    ):
        expected = np.array([float(each) for each in np.asarray(value)])
        seeded = [mechanism.release(each, np.random.default_rng(0)).value for each in (value, expected)]
        assert np.array_equal(*seeded)
        assert seeded[0].dtype == np.float64
    table = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(1, 2))
    for frame in (pandas.DataFrame, polars.DataFrame, pyarrow.table):
        value = frame({"a": [3], "b": [0.5]})
        seeded = [table.release(each, np.random.default_rng(0)).value for each in (value, [[3.0, 0.5]])]
        assert np.array_equal(*seeded)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-(2**70), 2**70), st.floats(-1e30, 1e30)), min_size=1, max_size=5))
def test_what_is_accepted_is_what_was_given(entries):
    try:
        found = validation.real_array(entries)
    except InvalidInput:
        assert any(isinstance(each, int) and abs(each) > 2**53 for each in entries)
    else:
        assert [Fraction(each) for each in found.tolist()] == [Fraction(each) for each in entries]


def test_whole_numbers_stay_exact_for_integer_noise():
    mechanism = ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=2)
    for value in (np.array([BIG, -BIG]), [BIG, -BIG]):
        assert integer_array(value, (2,)).tolist() == [BIG, -BIG]
        assert np.abs(mechanism.release(value).value - np.array([BIG, -BIG])).max() < 100
    for value in ([BIG, 1.0], [2**63, -1], [2**70, 1], np.array([2**63, 1], dtype=np.uint64), [Fraction(1), 1]):
        with pytest.raises(InvalidInput):
            mechanism.release(value)


def test_the_engine_itself_refuses_what_it_would_round():
    form = Independent(normal(), Real.exactly(2.0**20))
    with pytest.raises(InvalidInput, match=r"beyond 2\^53"):
        add_noise(form, np.array([BIG]), Stream.of(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([BIG, 1]), "beyond 2^53"),
        (np.array([2**63 + 1, 1], dtype=np.uint64), "beyond 2^53"),
        (np.array([WIDE, 1]), "lies between two numbers of float64" if HAS_WIDE_FLOATS else ""),
        (np.zeros(2, dtype=[("a", "i8")]), "is not numeric"),
        (np.array([1j, 1]), "the imaginary part"),
        (np.array([0.5, 1.0], dtype=np.float16), ""),
    ],
)
def test_the_command_line_refuses_them_too(tmp_path, value, words):
    np.save(tmp_path / "in.npy", value)
    target = ["--sensitivity", "1e6", "--epsilon", "1", "--delta", "1e-6", "--mechanism", "analytic-gaussian"]
    done = CliRunner().invoke(app, ["release", str(tmp_path / "in.npy"), str(tmp_path / "out.npy"), *target])
    assert done.exit_code == (2 if words else 0), done.output
    assert words in " ".join(done.output.split())
    assert (tmp_path / "out.npy").exists() == (not words)


# Numbers.

BETWEEN = st.one_of(
    st.fractions(Fraction(1, 10**9), 10**9),
    st.integers(2**53, 2**70),
    st.integers(2**53, 2**63 - 1).map(np.int64),
    st.integers(1, 10**6).map(lambda n: np.longdouble(1) / np.longdouble(n)),
)


def rational(value):
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value) if isinstance(value, np.integer) else value)


@settings(deadline=None)
@given(BETWEEN)
def test_numbers_between_floats_go_to_the_safe_side(value):
    exact = rational(value)
    up, down = Fraction(validation.sensitivity(value)), Fraction(validation.epsilon(value))
    assert down <= exact <= up
    assert up == down or math.nextafter(float(down), math.inf) == float(up)
    if exact < 1:
        assert Fraction(validation.delta(value)) <= exact
        assert Fraction(validation.delta_or_zero(value)) <= exact


def test_mechanisms_and_requests_keep_to_the_safe_side():
    third = Fraction(1, 3)
    assert Fraction(float(third)) < third
    mechanism = ln.laplace(epsilon=third, sensitivity=third, shape=1)
    assert Fraction(mechanism.sensitivity) >= third
    assert Fraction(mechanism.claim.epsilon) <= third
    request = Request(1, 1e-6, third, (2,), l1_sensitivity=third, entry_bound=third)
    for stated in (request.sensitivity, request.l1_sensitivity, request.entry_bound):
        assert Fraction(stated) >= third
    for bad in (Decimal("0.1"), "0.1", True, None):
        with pytest.raises(InvalidInput, match="is not a number"):
            ln.laplace(epsilon=1, sensitivity=bad, shape=1)


# Rows and their users.


@pytest.mark.parametrize("user", [2.0**53 + 2, 1e300, math.inf])
def test_users_are_not_merged_by_their_ids(user):
    """1e300 and infinity would be one 64-bit integer: a second user would push out rows of the first."""
    rows = np.array([[0.5, 1e300], [0.5, user]])
    query = ln.Histogram.grid(["x"], bins=[1], bounds=[(0, 1)])
    with pytest.raises(InvalidInput, match=r"unit='who' holds numbers that are not whole or beyond 2\^53"):
        query.answer(rows, unit=ln.Unit("who", max_rows=1))
    assert query.answer({"x": rows[:, 0], "who": [2**60, BIG]}, unit=ln.Unit("who", max_rows=1)).value.tolist() == [2]


def test_a_mask_hides_nothing_from_a_covariance():
    hidden = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]])
    with pytest.raises(InvalidInput, match="data has 1 masked entries"):
        ln.PrivateCovariance(epsilon=1, delta=1e-6, clip_norm=1).fit(hidden)

"""Text where numbers are needed: one sentence with the name of the column on every engine, and no word of the data."""

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.engines import answer
from lessnoise.engines.engine import check_kinds
from lessnoise.query import OTHER, TEXT, wrong_kind
from lessnoise.query.columns import INTEGER, NUMBER

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

SECRET = "Jane Doe of 12 Elm Street"
NUMBERS = ln.Sum(["income"], bounds=(0, 1))
CODES = ln.Histogram([ln.Axis("income", keys=[1, 2])])
SENTENCE = "column 'income' holds text, not numbers: write numbers such as 1000.5 and nothing for a missing one, "
WHOLE = "column 'income' holds text, not whole numbers: write whole numbers, or pass the keys as texts."


def said(query, data, **options):
    with pytest.raises(ln.InvalidInput) as caught:
        answer(query, data, **options)
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    for word in (SECRET, "Jane", "repair", str(len(SECRET))):
        assert word not in str(error)
    return str(error)


def sources(folder):
    """The same column in every form."""
    values = ["1", SECRET]
    frame = pandas.DataFrame({"income": values, "city": ["a", "b"]})
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    pa.parquet.write_table(pa.table(frame), folder / "t.parquet")
    yield {"income": np.array(values)}, None
    yield {"income": np.array(values, dtype=object)}, None
    yield np.array([[each] for each in values]), None
    yield np.array([[each] for each in values]), "duckdb"
    yield frame, None
    yield frame.astype({"income": "category"}), None
    yield frame.astype({"income": "string"}), None
    yield pa.table(frame), None
    yield pa.table({"income": pa.array(values, pa.large_string())}), None
    yield pa.table({"income": pa.array(values).dictionary_encode()}).to_reader(), None
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        yield folder / name, None
        yield folder / name, "dask"


@pytest.mark.slow
@pytest.mark.parametrize(("query", "sentence"), [(NUMBERS, SENTENCE), (CODES, WHOLE)], ids=["numbers", "codes"])
def test_the_same_sentence_everywhere(query, sentence, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    found = {said(query, data, engine=engine) for data, engine in sources(tmp_path)}
    found.add(said(query, dask.from_pandas(pandas.DataFrame({"income": ["1", SECRET]}), npartitions=2)))
    assert len(found) == 1
    assert found.pop().startswith(sentence)


def test_columns_of_a_server_are_refused_in_the_same_words():
    """Spark and PostgreSQL tell the kinds of columns, and everything else is as here."""
    for type_name in ("string", "character varying", "text", "VARCHAR", "<U25"):
        with pytest.raises(ln.InvalidInput, match="^" + SENTENCE):
            check_kinds(NUMBERS, ln.Unit(), [(TEXT, type_name)])


def test_a_csv_file_with_one_text_far_down(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("city,income\n" + "a,1.5\n" * 2000 + f"b,{SECRET}\n")
    assert said(NUMBERS, path).startswith(SENTENCE)
    path.write_text("city,income\na,1\na,1.75\n")
    with pytest.raises(ln.InvalidInput, match="column='income' has type DOUBLE, where the query needs whole numbers"):
        answer(CODES, path)


@pytest.mark.parametrize("values", [np.array([SECRET.encode()]), np.zeros(1, dtype="V25")])
def test_the_length_of_the_longest_text_is_not_told(values):
    with pytest.raises(ln.InvalidInput, match=r"column='income' has type (bytes|void), where") as caught:
        NUMBERS.answer({"income": values})
    assert "25" not in str(caught.value)


def test_text_is_still_fine_where_text_is_asked_for():
    wanted = ln.Histogram([ln.Axis("income", keys=["1", SECRET])])
    assert answer(wanted, pandas.DataFrame({"income": ["1", SECRET, SECRET]})).value.tolist() == [1, 2]
    assert "where the query needs text" in str(wrong_kind("income", "BIGINT", TEXT, INTEGER))
    assert "has type DATE, where the query needs numbers" in str(wrong_kind("income", "DATE", NUMBER, OTHER))

"""Columns as pyarrow, pandas, polars and DuckDB take them."""

import pickle

import diskperf
import pytest
from conftest import VAX
from hypothesis import given, settings
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

COLUMN = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(),
    "bool": st.booleans(),
}


@st.composite
def tables(draw):
    """Columns of all types, with nulls, of one length."""
    rows = draw(st.integers(0, 20))
    types = draw(st.lists(st.sampled_from(sorted(COLUMN)), min_size=1, max_size=6))
    names = [f"{of}_{number}" for number, of in enumerate(types)]
    values = [
        draw(st.lists(st.none() | COLUMN[of], min_size=rows, max_size=rows)) for of in types
    ]
    return dict(zip(names, values)), dict(zip(names, types))


@pytest.fixture(scope="module")
def run():
    return diskperf.run("ffs83", on=VAX)


@settings(max_examples=200, deadline=None)
@given(tables())
def test_pyarrow_and_pickle_have_the_same_values(table):
    values, types = table
    columns = diskperf.Columns.from_pydict(values, types)
    assert columns.to_pydict() == values
    assert columns.types == types
    arrow = pyarrow.table(columns)
    assert arrow.to_pydict() == values
    assert {field.name: str(field.type) for field in arrow.schema} == types
    assert pyarrow.schema(columns) == arrow.schema
    assert pickle.loads(pickle.dumps(columns)).to_pydict() == values


def test_all_tables_of_a_run_reach_every_consumer(run):
    for columns in (run.results, run.repetitions, run.ledger, run.spans()):
        rows = columns.to_pylist()
        assert len(rows) == len(columns) > 0
        assert pyarrow.table(columns).to_pylist() == rows
        assert polars.DataFrame(columns).to_dicts() == rows
        frame = pandas.DataFrame.from_arrow(columns)
        assert list(frame.columns) == columns.column_names
        for name in columns.column_names:
            of_frame = [None if pandas.isna(value) else value for value in frame[name]]
            assert of_frame == columns[name]


def test_duckdb_asks_a_table(run):
    spans = run.spans()
    found = duckdb.sql("SELECT count(*), sum(end_ns - start_ns) FROM spans").fetchall()[0]
    assert found[0] == len(spans)
    assert found[1] == sum(row["end_ns"] - row["start_ns"] for row in spans)
    assert duckdb.sql("SELECT * FROM spans").to_arrow_table().to_pylist() == spans.to_pylist()


def test_nothing_is_copied(run):
    """Whoever takes the columns sees the buffers that whoever else took them sees."""
    spans = run.spans()

    def addresses(table):
        return {
            name: [buffer and buffer.address for buffer in table[name].chunk(0).buffers()]
            for name in table.column_names
        }

    first = pyarrow.table(spans)
    assert addresses(first) == addresses(pyarrow.table(spans))
    # polars and pandas hand on what they took, so that it can be looked at.
    times = polars.DataFrame(spans)["start_ns"].to_arrow()
    assert times.buffers()[1].address == first["start_ns"].chunk(0).buffers()[1].address
    # A frame and what it was made from may go in any order.
    del spans, first
    assert times.null_count == 0


def test_a_capsule_outlives_its_columns():
    table = pyarrow.table(diskperf.run("read_8192", on=VAX).repetitions)
    assert table["bytes"].to_pylist() == [8 << 20] * 7


def test_columns_are_python_too(run):
    results = run.results
    assert results.num_rows == len(results["program"]) == len(list(results))
    assert "kb_per_s" in results and "kb" not in results
    with pytest.raises(KeyError, match="no column `kb`; there are program"):
        results["kb"]
    assert repr(results).startswith("<Columns of 8 rows: program, filesystem")
    html = results._repr_html_()
    assert html.count("<tr>") == 9 and "ffs/8192" in html
    with pytest.raises(ValueError, match="has no type"):
        diskperf.Columns.from_pydict({"a": [1]}, {})
    with pytest.raises(ValueError, match="has 1 values"):
        diskperf.Columns.from_pydict({"a": [1, 2], "b": [1]}, {"a": "int64", "b": "int64"})

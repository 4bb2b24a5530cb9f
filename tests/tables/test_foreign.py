"""Anybody's table is read alike from every format, and a broken one says what is broken."""

import gzip
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.files.parquet import read_origin
from moelaws.spec.errors import UserError
from moelaws.tables.foreign import as_numbers, columns, no_number, numbers, read_any

TABLE = pd.DataFrame({"name": ["a", "b c"], "Model Size": [1e9, 2.5e9], "loss": [2.5, 2.25]})


FORMATS = ["parquet", "pq", "csv", "tsv", "jsonl", "ndjson", "json", "CSV", "tsv.gz", "jsonl.gz"]


def _write(path):
    suffix = path.suffixes[0]
    if suffix in (".parquet", ".pq"):
        TABLE.to_parquet(path)
    elif suffix in (".csv", ".tsv"):
        TABLE.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    else:
        TABLE.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_holds_the_same_table(suffix, tmp_path):
    written = _write(tmp_path / f"runs.{suffix.lower()}")
    path = written.rename(tmp_path / f"runs.{suffix}")
    frame, units = read_any(path)
    pd.testing.assert_frame_equal(frame, TABLE, check_dtype=False)
    assert units == {}


@given(st.integers(-(10**30), 10**30), st.sampled_from([("", 1), ("k", 1e3), ("B", 1e9)]))
def test_a_cell_is_a_number_as_people_write_it(whole, scale):
    suffix, factor = scale
    for text in (f"{whole}{suffix}", f"{whole:,}{suffix}", f" {whole:,}.0 {suffix}"):
        (value,) = as_numbers(pd.Series([text]))
        assert value == pytest.approx(whole * factor, rel=1e-15)


def test_a_column_is_of_numbers_where_all_its_cells_are(tmp_path):
    (tmp_path / "t.csv").write_text(
        "flops,size,tokens,name,comma,empty,flag\n"
        '18446744073709551617,12.0M,"1,000",7B,"1,5",,True\n'
        '5,1.2B,"12,345,678.5",tiny,"2,000",,False\n'
        "1e20,,2e3,7B,,,True\n"
    )
    frame, _ = read_any(tmp_path / "t.csv")
    read = numbers(frame)
    assert set(read) == {"flops", "size", "tokens", "empty"}
    assert read["flops"].tolist() == [2.0**64, 5, 1e20]
    assert read["size"].tolist()[:2] == [12e6, 1.2e9]
    assert read["tokens"].tolist() == [1000, 12345678.5, 2000]
    assert columns(frame)["name"].tolist() == ["7B", "tiny", "7B"]
    assert columns(frame)["flag"].tolist() == ["True", "False", "True"]


@pytest.mark.parametrize(
    "cell", ["1,5", "1,00", "12,34,567", ",100", "1_000", "１０", "1e3M", "M", ""]
)
def test_a_cell_that_may_mean_another_number_is_none(cell):
    cells = pd.Series([cell, "1"])
    assert no_number(cells, as_numbers(cells)).tolist() == [True, False]


def test_units_are_those_of_the_schema(tmp_path):
    size = pa.field("N", pa.float64(), metadata={"unit": "parameters"})
    schema = pa.schema([size, pa.field("L", pa.float64())])
    pq.write_table(pa.table([[1e9], [2.5]], schema=schema), path := tmp_path / "t.parquet")
    frame, units = read_any(path)
    assert units == {"N": "parameters"}
    assert frame["L"].tolist() == [2.5]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "\ufeffN , L, status,,\n1, 2, completed,,\n3, 4, failed,,\n"),  # a spreadsheet's
        ("t.csv", "N;L;status\n1;2;completed\n3;4;failed\n"),
        ("t.csv", "N,L,status\r1,2,completed\r3,4,failed\r"),
        ("t.txt.tsv", "N,L,status\r\n1,2,completed\r\n3,4,failed\r\n"),
        ("t.csv", '"N"\t"L"\t"status"\n1\t2\tcompleted\n3\t4\tfailed\n'),
    ],
)
def test_columns_are_parted_by_the_mark_of_the_first_line(name, text, tmp_path):
    (tmp_path / name).write_bytes(text.encode())
    frame, _ = read_any(tmp_path / name)
    assert list(frame)[:3] == ["N", "L", "status"]
    assert frame["L"].tolist() == [2, 4]
    assert frame["status"].tolist() == ["completed", "failed"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"x", r"t\.xlsx: a table ends in one of \.parquet, \.pq, \.csv, \.tsv"),
        ("t.csv", b"", "one column alone, ''; commas, semicolons or tabs must separate columns"),
        ("t.csv", b"N,L\n1,2,3\n", "cannot be read: Length of header or names does not match"),
        ("t.csv", b"N,L\n", r"t\.csv has no rows"),
        ("none.csv", None, r"none\.csv: cannot be read: No such file or directory"),
        ("t.csv", b"N,L,N\n1,2,3\n", "column N stands twice; rename one of them"),
        ("t.csv", b"N,L\n1,2\n\xe9,3\n", "'utf-8' codec can't decode byte 0xe9"),
        ("t.csv", b"1e9,2e10,2.5\n2e9,2e10,2.4\n", "no column names; the first line must hold"),
        ("t.jsonl", b'{"N": 1}\n[1, 2]\n', r"row 2 is \[1, 2\]; it must be an object"),
        ("t.json", b'[{"N": 1}', "t.json is not valid JSON"),
        ("t.md", b"# Runs\n\nNone.\n", r"say which table with t\.md#HEADING .* below none"),
        ("t.md", b"| N | L |\n| 1 | 2 |\n", r"table below no heading has no line \|---\|---\|"),
        ("t.jsonl", b'{"N": 1, "N": 2}\n', "line 1 is not valid JSON: key 'N' stands twice"),
        ("t.parquet", b"PAR1 and no more", "no readable Parquet file"),
        ("t.csv.gz", gzip.compress(b"N,L\n1,2\n", mtime=0)[:-12], "Compressed file ended before"),
        ("t.csv.gz", b"no gzip at all", "cannot be read: Not a gzipped file"),
    ],
)
def test_a_broken_file(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_any(tmp_path / name)
    assert "\n" not in str(error.value)


MARKS = [
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b",,", b",,,", b"\n", b"\r", b"\t"),
    *(b";", b"{", b"[" * 2000, b"#"),
]


@given(
    suffix=st.sampled_from(["csv", "tsv", "jsonl", "parquet"]),
    place=st.floats(0, 1, exclude_max=True),
    lost=st.sampled_from([0, 1, 50, 10**6]),
    mark=st.sampled_from(MARKS),
)
def test_a_spoilt_file_is_a_table_or_one_line(tmp_path_factory, suffix, place, lost, mark):
    path = _write(tmp_path_factory.mktemp("spoilt") / f"t.{suffix}")
    data, at = path.read_bytes(), int(place * path.stat().st_size)
    path.write_bytes(data[:at] + mark + data[at + lost :])
    said = ""
    try:
        numbers(read_any(path)[0])
    except UserError as refused:
        said = str(refused)
    assert "\n" not in said


def test_a_small_file_that_unpacks_to_more_than_memory_is_refused(tmp_path):
    note = pa.DictionaryArray.from_arrays(pa.array([0] * 300_000), pa.array(["x" * 10**6]))
    pq.write_table(pa.table({"note": note}), path := tmp_path / "t.parquet", store_schema=False)
    assert path.stat().st_size < 2 * 10**6
    with pytest.raises(UserError, match=r"t\.parquet, unpacked, has 300,000 MB"):
        read_any(path)


def test_metadata_of_another_meaning_are_told_of_on_one_line(tmp_path):
    table = pa.table({"N": [1.0]}).replace_schema_metadata({"made_of": "5"})
    pq.write_table(table, path := tmp_path / "runs.parquet")
    assert list(read_any(path)[0]) == ["N"]
    with pytest.raises(UserError, match="its metadata made_of are no keys and values"):
        read_origin(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_holds_rows_in_a_list_or_in_a_list_below_a_key(indent, tmp_path):
    rows = TABLE.to_dict("records")
    (tmp_path / "t.json").write_text(json.dumps(rows, indent=indent) + "\n\n")
    pd.testing.assert_frame_equal(read_any(tmp_path / "t.json")[0], TABLE, check_dtype=False)
    whole = {"metric": "loss", "dropped": [], "selected_runs": rows}
    (tmp_path / "o.json").write_text(json.dumps(whole, indent=indent))
    frame, _ = read_any(tmp_path / "o.json", "selected_runs")
    pd.testing.assert_frame_equal(frame, TABLE, check_dtype=False)
    with pytest.raises(UserError, match="no list 'selected'; did you mean selected_runs"):
        read_any(tmp_path / "o.json", "selected")
    with pytest.raises(UserError, match="has no list 'runs'; its lists are: none"):
        read_any(tmp_path / "t.json", "runs")
    with pytest.raises(UserError, match=r"only \.json and \.md files have parts"):
        read_any(_write(tmp_path / "t.csv"), "runs")


PAGE = """# Runs

| file | what |
|------|------|
| `a.py` | a first table |

```bash
# Results
| no | table |
```

## Results

They are recorded.

| size | tokens | MFU | [loss](x.html) | steps |
|:-----|-------:|----:|---------------:|------:|
| **d512** | 0.36B | 16.6% | 3.676 | 2,040 |
| [d768](https://x.org/a_b) | 1.07B | | 3.283 | 690 |

| size | a second table |
|---|---|
| d512 | 1 |

## More results ##

| a\\|b | `c` |
|-|-|
| 1 | 9.4e16 |
"""


@pytest.mark.parametrize("orient", ["columns", "list"])
def test_json_by_columns_is_a_table(orient, tmp_path):
    table = pd.DataFrame({"N": [1e9, 2e9], "L": [2.5, 2.4], "run": ["a", "b"]})
    data = json.loads(table.to_json()) if orient == "columns" else table.to_dict("list")
    (tmp_path / "t.json").write_text(json.dumps(data, indent=1))
    pd.testing.assert_frame_equal(read_any(tmp_path / "t.json")[0], table)


def test_nested_values_are_columns_of_two_names(tmp_path):
    rows = [{"arch": {"N": N, "name": "a"}, "train": {"D": 2e9}, "L": 2.5} for N in (1e8, 2e8)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame, _ = read_any(tmp_path / "t.jsonl")
    assert list(frame) == ["L", "arch.N", "arch.name", "train.D"]
    assert frame["arch.N"].tolist() == [1e8, 2e8]


def test_a_page_holds_a_table_below_a_heading(tmp_path):
    (tmp_path / "README.md").write_text(PAGE.replace("\\\\", "\\"))
    frame, _ = read_any(tmp_path / "README.md", "Results")
    assert list(frame) == ["size", "tokens", "MFU", "loss", "steps"]
    assert frame["size"].tolist() == ["d512", "d768"]
    read = numbers(frame)
    assert read["tokens"].tolist() == [0.36e9, 1.07e9]
    assert read["MFU"][0] == pytest.approx(0.166)
    assert frame["MFU"].isna().tolist() == [False, True]
    assert read["steps"].tolist() == [2040, 690]
    more = read_any(tmp_path / "README.md", "More results")[0]
    assert more.to_dict("records") == [{"a|b": "1", "c": "9.4e16"}]
    second = read_any(tmp_path / "README.md#Results (2)")[0]
    assert second.to_dict("records") == [{"size": "d512", "a second table": "1"}]
    with pytest.raises(UserError, match=r"tables are below 'Runs', 'Results', 'Results \(2\)', 'M"):
        read_any(tmp_path / "README.md")
    with pytest.raises(UserError, match="'More results'; did you mean Results"):
        read_any(tmp_path / "README.md", "Result")


def test_an_index_of_pandas_is_a_column_whatever_its_notes_say(tmp_path):
    path = tmp_path / "runs.parquet"
    TABLE.set_index("loss").to_parquet(path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"pandas": "{"}), path)
    assert set(read_any(path)[0]) == set(TABLE)

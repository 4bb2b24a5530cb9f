"""YAML, JSON and files of users: what is read differently from YAML 1.1, and what is too much."""

import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from moelaws.files.atomic import read_json
from moelaws.files.parquet import MOST_CELLS
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.from_json import parse_json
from moelaws.spec.from_yaml import parse_yaml, read_yaml
from moelaws.tables.foreign import read_any
from repository import REPOSITORY

# Ten times ten, nine times over.
BOMB = "a0: &a0 x\n" + "".join(
    f"a{i}: &a{i} [{', '.join(10 * [f'*a{i - 1}'])}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/**/*.yaml")), ids=lambda p: p.stem)
def test_the_shipped_files_are_read_as_any_reader_of_yaml_reads_them(path):
    assert read_yaml(path) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[3, -3, 0, 1_000, 0x1F, 0b11]", [3, -3, 0, "1_000", 31, 3]),
        ("[0.5, .5, 1., -1.5e+3, 3e-3, 1e20]", [0.5, 0.5, 1.0, -1500.0, "3e-3", "1e20"]),
        ("[010, -007, 1:30:00, 1:30.5, 0o17]", ["010", "-007", "1:30:00", "1:30.5", "0o17"]),
        ("[on, off, yes, no, true]", [True, False, True, False, True]),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    ],
)
def test_plain_texts(text, data):
    assert parse_yaml(text, "a.yaml") == data


REFUSED = {parse_yaml: "a.txt: this is not valid YAML: ", parse_json: "a.txt is not valid JSON: "}


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_yaml, "[" * 100_000, "nested more than 100 levels deep"),
        (parse_yaml, BOMB, "it has more than 100,000 values"),
        (parse_yaml, "a: 2020-99-99", "month must be in 1..12"),
        (parse_yaml, "9" * 5000, "integer string conversion: value has 5000 digits"),
        (parse_yaml, "a: 1\na: 2", "line 2, column 1: key 'a' stands twice"),
        (parse_yaml, "a: !!python/object:os.system {}", "python/object:os.system'"),
        (parse_yaml, 'a: "x\\0y"', "line 1, column 4: a text has a NUL"),
        (parse_yaml, "".join(f"k{i}: 1\n" for i in range(10**6)), "more than 100,000 values"),
        (parse_json, "[" * 100_000, "maximum recursion depth exceeded"),
        (parse_json, '{"a": NaN}', "NaN is no number of JSON"),
        (parse_json, b"\xff", "can't decode byte 0xff in position 0"),
        (parse_json, '{"a": 1' + "0" * 308 + "}", "1e308 or more"),
        (parse_json, '{"a": ["\\uDFFF"]}', "surrogates not allowed"),
        (
            parse_json,
            "{" + ", ".join(f'"{i // 2}": 1' for i in range(200_000)) + "}",
            "stands twice",
        ),
    ],
)
def test_yaml_and_json_that_are_refused(parse, text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse(text, "a.txt")
    assert str(caught.value).startswith(REFUSED[parse])
    assert "\n" not in str(caught.value)


def test_json_may_begin_with_the_mark_of_an_editor():
    assert parse_json('{"a": 1}'.encode("utf-8-sig"), "a.json") == {"a": 1}


def test_every_file_of_a_user_goes_through_these_readers():
    """A loader of one's own would have none of these limits."""
    own = {"spec/from_json.py", "spec/from_yaml.py"}
    loaders = r"\b(json\.loads?|json\.JSONDecoder|yaml\.\w*load\w*|model_validate_json)\("
    users = {
        str(path.relative_to(REPOSITORY / "src/moelaws"))
        for path in (REPOSITORY / "src").rglob("*.py")
        if re.search(loaders, path.read_text())
    }
    assert users == own


READERS = {
    **dict.fromkeys((".csv", ".jsonl", ".parquet"), read_any),
    ".json": read_json,
    ".yaml": read_yaml,
    ".bin": read_bytes,
}


def test_a_text_that_unpacks_to_more_than_is_read_is_refused(tmp_path):
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"N,L\n")
        for _ in range(2**28 // 2**24 + 1):
            file.write(b"1,2\n" * 2**22)
    with pytest.raises(UserError, match=r"x\.csv\.gz, unpacked, has 268 MB; at most 268 MB"):
        read_any(path)


def sparse(path):
    with path.open("wb") as file:
        file.truncate(4 * 10**12)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is a pipe or a device"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device"),
        (sparse, "has 4,000,000 MB; at most"),
    ],
)
def test_what_never_ends_is_refused_at_once(tmp_path, suffix, make, message):
    path = tmp_path / f"x{suffix}"
    make(path)
    with pytest.raises(UserError, match=message) as error:
        READERS[suffix](path)
    assert "\n" not in str(error.value)


READ = """
import resource, sys
from pathlib import Path
from moelaws.files.parquet import read_parquet
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))  # it ends otherwise than asserted
read_parquet(Path(sys.argv[1]))
"""


def test_a_table_that_unpacks_to_more_than_memory_takes_none(tmp_path):
    path = tmp_path / "bomb.parquet"
    column = pa.array(np.zeros(10**7))
    with pq.ParquetWriter(path, pa.schema([("L", pa.float64())]), compression="zstd") as writer:
        for _ in range(MOST_CELLS // 10**7 + 1):
            writer.write_table(pa.table({"L": column}))
    assert path.stat().st_size < 10**6
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True)
    assert f"110,000,000 cells; at most {MOST_CELLS:,} are read" in done.stderr

"""What is no plain file, or is far too large, is refused before it is read."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moelaws.files.atomic import read_json
from moelaws.files.parquet import MOST_CELLS
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.from_json import parse_json
from moelaws.spec.from_yaml import parse_yaml, read_yaml
from moelaws.tables.foreign import read_any

READERS = {
    ".csv": read_any,
    ".jsonl": read_any,
    ".parquet": read_any,
    ".json": read_json,
    ".yaml": read_yaml,
    ".bin": read_bytes,
}


@pytest.fixture(params=READERS)
def refused(request, tmp_path):
    """The words by which a path is refused, whatever kind of file it should be."""

    def words(make):
        path = tmp_path / f"x{request.param}"
        make(path)
        with pytest.raises(UserError) as error:
            READERS[request.param](path)
        assert "\n" not in str(error.value)
        return str(error.value)

    return words


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is a pipe or a device"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device"),
        (sparse, "has 4,000,000 MB; at most"),
    ],
)
def test_what_never_ends_is_refused_at_once(refused, make, message):
    assert message in refused(make)


def test_a_nul_is_in_no_path():
    with pytest.raises(UserError, match="a path cannot have a NUL in it"):
        read_bytes("a\0b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1' + "0" * 308 + "}", "1e308 or more"),
        ('{"\\ud800": 1}', "half a surrogate pair"),
        ('{"a": ["\\uDFFF"]}', "half a surrogate pair"),
        ("{" + ", ".join(f'"{i // 2}": 1' for i in range(200_000)) + "}", "stands twice"),
    ],
)
def test_json_that_no_program_could_use_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        parse_json(text, "x.json")


def test_odd_but_usable_json_is_read():
    data = {"pair": "\U0001f600", "text": "9" * 400, "n": 10**307, "x": [1e300]}
    assert parse_json(json.dumps(data), "x") == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: "x\\0y"', "line 1, column 4: a text has a NUL"),
        ("".join(f"k{i}: 1\n" for i in range(10**6)), "more than 100,000 values"),
    ],
)
def test_yaml_that_no_study_needs_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        parse_yaml(text, "x.yaml")


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

"""A query answers from the tables of the tree; it reads nothing else, writes nothing and ends."""

import csv
import io
import json
import os
import signal
import threading

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from moelaws.files.atomic import write_json, write_text
from moelaws.files.layout import Results
from moelaws.tables.column import Column
from moelaws.tables.locked import LOCKED, answer
from moelaws.tables.parquet import write_table
from moelaws.tables.query import query

TABLES = {"sparsity": pa.table({"S": [0.0, 0.5], "L": [4.0, None]})}
ENDLESS = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range < b.range"

# What an unconfined DuckDB does for a file `words.csv`.
REACHES_OUT = [
    "COPY sparsity TO 'new.parquet'",
    "COPY (SELECT 1) TO 'words.csv'",
    "ATTACH 'new.db'",
    "EXPORT DATABASE 'new'",
    "FROM read_csv('words.csv')",
    "FROM read_text('words.csv')",
    "FROM read_csv('/dev/null', columns={'a': 'INT'})",
    "FROM glob('*')",
    "FROM 'words.csv'",
    "FROM parquet_metadata('words.parquet')",
    "FROM query('FROM ''words.csv''')",
    "SELECT (SELECT max(content) FROM read_text('words.csv'))",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'new.csv'",
    "SET memory_limit = '1TB'",
    "PRAGMA enable_profiling = 'json'",
    "FROM enable_logging(storage = 'file', storage_path = 'log')",
    "FROM python_variable",
]
# These would use the network, or have no meaning where no extension is.
REACHES_FAR = [
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD './words.duckdb_extension'",
    "FROM read_csv('https://127.0.0.1:9/words.csv')",
    "FROM 's3://bucket/words.parquet'",
    "ATTACH 'https://127.0.0.1:9/new.db'",
    "SELECT getenv('HOME')",
    "FROM duckdb_secrets()",
    "WITH x AS (INSERT INTO sparsity VALUES (1, 1) RETURNING *) FROM x",
]
NO_SELECT = ["", "SELECT 1; SELECT 2", "CREATE TABLE new AS SELECT 1", "SET VARIABLE x = 1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with two files that only an unconfined DuckDB reads."""
    (tmp_path / "words.csv").write_text("word\nsecret\n")
    pd.DataFrame({"word": ["secret"]}).to_parquet(tmp_path / "words.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("sql", REACHES_OUT)
def test_what_duckdb_does_beyond_the_tables_is_refused(sql, folder):
    python_variable = pd.DataFrame({"word": ["secret"]})
    before = files(folder)
    with pytest.raises((duckdb.Error, ValueError)):
        answer(sql, TABLES)
    with duckdb.connect(config=LOCKED) as locked:  # its own settings refuse it, whatever its kind
        locked.register("sparsity", TABLES["sparsity"])
        with pytest.raises(duckdb.Error):
            locked.execute(sql)
    assert files(folder) == before
    with duckdb.connect() as unconfined:  # and it is no other mistake
        unconfined.register("sparsity", TABLES["sparsity"])
        unconfined.execute(sql)
    assert len(python_variable)


@pytest.mark.parametrize("sql", REACHES_FAR + NO_SELECT)
def test_what_reaches_further_or_is_no_select_is_refused(sql, folder):
    before = files(folder)
    with pytest.raises((duckdb.Error, ValueError)):
        answer(sql, TABLES)
    assert files(folder) == before


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT S, L FROM sparsity ORDER BY S DESC", [[0.5, None], [0.0, 4.0]]),
        ("FROM Sparsity SELECT max(S);", [[0.5]]),
        ("WITH a AS (SELECT 1 AS x) FROM a", [[1]]),
        ("SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) t(x)", [[2**63]]),
        ("SHOW TABLES", [["sparsity"]]),
        ("SELECT column_name FROM (DESCRIBE sparsity)", [["S"], ["L"]]),
    ],
)
def test_answers(sql, rows):
    assert answer(sql, TABLES).rows == rows


def test_a_select_is_explained():
    assert "plan" in answer("-- é\nEXPLAIN (ANALYZE) SELECT 'é'", TABLES).rows[0][0]


@pytest.fixture
def tree(project_folder):
    """A project with a table and two runs, in the current folder."""
    results = Results(project_folder / "results")
    columns = (Column("S", "float", "sparsity"), Column("L", "float?", "loss", "nats"))
    table = pd.DataFrame({"S": [0.0, 0.1], "L": [4.1234567890123, None]})
    write_table(table, columns, results.tier("demo").table("sparsity"))
    for run_id, seed, resumed in (("a1", 1, [{"code": "x"}]), ("a2", "unknown", [{"code": 1}])):
        write_json(results.run(run_id) / "config.json", {"seed": seed})
        write_json(results.run(run_id) / "provenance.json", {"code": "", "resumed_from": resumed})
    return results


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SELECT 1; SELECT 2"], "the SQL is SELECT, SELECT; allowed is one SELECT"),
        (["FROM read_text('/etc/passwd')"], 'Cannot access file "/etc/passwd"'),
        (["COPY sparsity TO 'x.csv'"], "the SQL is COPY; allowed is one"),
        (["FROM sparsty"], "over these tables of tier demo: sparsity, runs"),
        ([ENDLESS], "there was no answer within 2 s; ask for less"),
        (["SELECT list(range) FROM range(1000000000)"], "more than 1 GB"),
        (["SELECT length(repeat('x', 4000000000))"], "more than 1 GB"),
        (["FROM range(1000001)"], "more than 1,000,000 rows"),
        (["SELECT '\udcff'"], "can't encode"),
    ],
)
def test_one_line_says_why_there_is_no_answer(words, message, tree, ended, monkeypatch):
    if words == [ENDLESS]:
        monkeypatch.setattr("moelaws.tables.locked.SECONDS", 2)
    monkeypatch.setattr("moelaws.tables.locked.GIGABYTES", 1)
    before = files(tree.root.parent)
    code, output, error = ended("query", *words)
    assert (code, output) == (2, "")
    assert message in error
    assert error.startswith("moelaws: ")
    assert error.count("\n") == 1
    assert files(tree.root.parent) == before


def test_what_a_damaged_file_says_is_null(project_folder, ended):
    results = Results(project_folder / "results")
    folder = results.run("0123456789abcdef")
    write_text(folder / "config.json", '{"seed":1}\n')  # whose digest is another
    write_json(folder / "provenance.json", {"code": "x"})
    sql = 'SELECT run_id, status, "provenance.code" FROM runs'
    code, printed, error = ended("query", sql, "--json")
    row = {"run_id": "0123456789abcdef", "status": "damaged", "provenance.code": "x"}
    assert (code, json.loads(printed)) == (0, [row])
    assert "damaged files say of 1 run is null: 0123456789abcdef" in error
    assert "config.seed" not in {name for name, *_ in query("DESCRIBE runs", results, "demo").rows}


def test_csv_has_the_numbers_in_full(tree, ended):
    sql = "SELECT S, L, 'a,b' AS t, [1, 2] AS l FROM sparsity ORDER BY S"
    lines = [["S", "L", "t", "l"], ["0.0", "4.1234567890123", "a,b", "[1, 2]"]]
    lines.append(["0.1", "", "a,b", "[1, 2]"])
    code, printed, _ = ended("query", sql, "--csv")
    assert (code, list(csv.reader(io.StringIO(printed)))) == (0, lines)


def test_a_broken_table_matters_to_the_queries_that_read_it_alone(tree, ended):
    tree.tier("demo").table("leverage").write_text("not Parquet")
    assert ended("query", "SELECT count(*) FROM sparsity")[0] == 0
    code, _, error = ended("query", "SELECT count(*) FROM leverage")
    assert (code, error.count("\n")) == (2, 1)
    assert "leverage.parquet is no readable Parquet file" in error


def test_ctrl_c_ends_the_query(tree):
    interrupt = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        query(ENDLESS, tree, "demo")

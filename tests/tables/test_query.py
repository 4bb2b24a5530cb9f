"""A query answers from the tables of the tree; it reads nothing else, writes nothing and ends."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from moelaws.cli import main
from moelaws.records.files import write_json
from moelaws.records.layout import Results
from moelaws.tables import confined
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from moelaws.tables.query import query
from repository import REPOSITORY

GIGABYTE = 10**9
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
    "FROM read_blob('words.csv')",
    "FROM read_csv('/dev/null', columns={'a': 'INT'})",
    "FROM glob('*')",
    "FROM sniff_csv('words.csv')",
    "FROM 'words.csv'",
    "DESCRIBE 'words.csv'",
    "SUMMARIZE 'words.csv'",
    "FROM read_parquet('words.parquet')",
    "FROM parquet_metadata('words.parquet')",
    "FROM query('FROM ''words.csv''')",
    "SELECT (SELECT max(content) FROM read_text('words.csv'))",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'new.csv'",
    "/* é */ EXPLAIN (ANALYZE) COPY (SELECT 1) TO 'new.csv'",
    "SELECT 1; COPY (SELECT 1) TO 'new.csv'",
    "SELECT 1; SELECT 2",
    "SET memory_limit = '1TB'",
    "PRAGMA memory_limit = '1TB'",
    "SET VARIABLE x = 1",
    "CALL enable_logging(storage = 'file', storage_path = 'log')",
    "FROM enable_logging(storage = 'file', storage_path = 'log')",
    "FROM python_variable",
    "CREATE TABLE new AS SELECT 1",
    "EXPLAIN CREATE TABLE new AS SELECT 1",
    "PREPARE x AS SELECT 1",
]
# These would use the network, or have no meaning where no extension is.
REACHES_FAR = [
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD './words.duckdb_extension'",
    "FROM 'http://127.0.0.1:9/words.csv'",
    "FROM read_csv('https://127.0.0.1:9/words.csv')",
    "FROM 's3://bucket/words.parquet'",
    "FROM '/etc/passwd'",
    "ATTACH 'https://127.0.0.1:9/new.db'",
    "SELECT getenv('HOME')",
    "FROM duckdb_secrets()",
    "WITH x AS (INSERT INTO sparsity VALUES (1, 1) RETURNING *) FROM x",
    "",
]


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
    with pytest.raises((duckdb.Error, confined.RefusedError)):
        confined.answer(sql, TABLES, GIGABYTE)
    assert files(folder) == before
    with duckdb.connect() as unconfined:  # and it is no other mistake
        unconfined.register("sparsity", TABLES["sparsity"])
        unconfined.execute(sql)
    assert len(python_variable)


@pytest.mark.parametrize("sql", REACHES_FAR)
def test_what_reaches_further_is_refused(sql, folder):
    before = files(folder)
    with pytest.raises((duckdb.Error, confined.RefusedError)):
        confined.answer(sql, TABLES, GIGABYTE)
    assert files(folder) == before


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable_external_access", False),
        ("lock_configuration", True),
        ("autoinstall_known_extensions", False),
        ("autoload_known_extensions", False),
        ("python_enable_replacements", False),
        ("temp_directory", ""),  # nowhere to spill to
    ],
)
def test_each_way_out_is_closed_even_where_another_one_is_too(setting, value):
    sql = f"SELECT current_setting('{setting}')"
    assert confined.answer(sql, {}, GIGABYTE)["rows"] == [(value,)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT S, L FROM sparsity ORDER BY S DESC", [(0.5, None), (0.0, 4.0)]),
        ("FROM Sparsity SELECT max(S);", [(0.5,)]),
        ("WITH a AS (SELECT 1 AS x) FROM a", [(1,)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) t(x)", [(2**63,)]),
        ("SHOW TABLES", [("sparsity",)]),
        ("SELECT column_name FROM (DESCRIBE sparsity)", [("S",), ("L",)]),
        ("SELECT column_name FROM (SUMMARIZE sparsity)", [("S",), ("L",)]),
    ],
)
def test_answers(sql, rows):
    assert confined.answer(sql, TABLES, GIGABYTE)["rows"] == rows


def test_each_column_has_a_name_of_its_own():
    answer = confined.answer("SELECT 1 AS a, 2 AS a, 3 AS a", {}, GIGABYTE)
    assert answer["columns"] == ["a", "a_1", "a_1_1"]


@pytest.mark.parametrize("sql", ["EXPLAIN FROM sparsity", "-- é\nEXPLAIN (ANALYZE) SELECT 'é'"])
def test_a_select_is_explained(sql):
    assert "plan" in confined.answer(sql, TABLES, GIGABYTE)["rows"][0][0]


def test_a_time_with_a_zone_is_told_how_to_be_read():
    with pytest.raises(confined.RefusedError, match=r"column 't' is .*; cast it to TIMESTAMP"):
        confined.answer("SELECT [now()] AS t", {}, GIGABYTE)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with a table and two runs, in the current folder."""
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    results = Results(tmp_path / "results")
    columns = (Column("S", "float", "1", "sparsity"), Column("L", "float", "nats", "loss", True))
    table = pd.DataFrame({"S": [0.0, 0.1], "L": [4.1234567890123, None]})
    write_table(table, columns, results.tier("demo").table("sparsity"))
    for run_id, seed, resumed in (("a1", 1, [{"code": "x"}]), ("a2", "unknown", [{"code": 1}])):
        write_json(results.run(run_id) / "config.json", {"seed": seed})
        write_json(results.run(run_id) / "provenance.json", {"resumed_from": resumed})
    monkeypatch.chdir(tmp_path)
    return results


@pytest.fixture
def ended(monkeypatch, capsys):
    """Runs the command as a user's shell does: (exit code, standard output, standard error)."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["moelaws", "query", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        return exit_.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SELECT 1; SELECT 2"], "the text holds 2 statements; one is allowed; allowed is one"),
        (["FROM read_text('/etc/passwd')"], 'Cannot access file "/etc/passwd"'),
        (["COPY sparsity TO 'x.csv'"], "a statement of the kind COPY is not allowed"),
        (["FROM sparsty"], "over these tables of tier demo: sparsity, runs"),
        ([ENDLESS, "--time-limit", "2"], "there was no answer within 2 s"),
        # DuckDB does not count the first against its limit, nor interrupts the second.
        (["SELECT len(repeat('x', 3000000000))", "--memory-limit", "1"], "more than 1 GB"),
        (["SELECT " + "(" * 20_000, "--time-limit", "1"], "there was no answer within 1 s"),
        (["FROM range(1000001)"], "more than 1,000,000 rows"),
        (["SELECT " + "[" * 120 + "]" * 120], "nested too deeply; cast it to VARCHAR"),
        (["SELECT '\udcff'"], "is not UTF-8"),
        (["SELECT 1", "--csv", "x.csv", "--json"], "give one of them"),
        (["SELECT 1", "--csv", "x.parquet"], "--csv is 'x.parquet'; its name must end in .csv"),
        (["SELECT 1", "--csv", "results/demo/figures/x.csv"], "give a file elsewhere"),
        (["SELECT 1", "--csv", "link/x.csv"], "give a file elsewhere"),
    ],
)
def test_one_line_says_why_there_is_no_answer(words, message, tree, ended):
    (tree.root.parent / "link").symlink_to(tree.root / "demo")
    before = files(tree.root.parent)
    code, output, error = ended(*words)
    assert (code, output) == (2, "")
    assert message in error
    assert error.startswith("moelaws: ")
    assert error.count("\n") == 1
    assert files(tree.root.parent) == before


def test_csv_has_the_numbers_in_full(tree, ended):
    sql = "SELECT S, L, 'a,b' AS t, [1, 2] AS l FROM sparsity ORDER BY S"
    lines = [["S", "L", "t", "l"], ["0.0", "4.1234567890123", "a,b", "[1, 2]"]]
    lines.append(["0.1", "", "a,b", "[1, 2]"])
    code, printed, _ = ended(sql, "--csv", "-")
    assert (code, list(csv.reader(io.StringIO(printed)))) == (0, lines)
    path = tree.root.parent / "new/answer.csv"
    assert ended(sql, "--csv", path)[:2] == (0, f"{path}: 2 rows\n")
    assert path.read_text() == printed


def test_runs_that_differ_in_the_type_of_a_value_are_text(tree, ended):
    sql = 'SELECT seed, resumed FROM (SELECT "config.seed" AS seed, "provenance.resumed_from"'
    code, printed, _ = ended(sql + " AS resumed FROM runs) ORDER BY seed", "--json")
    assert code == 0
    assert json.loads(printed) == [
        {"seed": '"unknown"', "resumed": '[{"code": 1}]'},
        {"seed": "1", "resumed": '[{"code": "x"}]'},
    ]


def test_a_tree_without_results_has_no_runs(tmp_path):
    assert query("SELECT count(*) FROM runs", Results(tmp_path), "demo").rows == [[0]]


def test_a_broken_table_matters_to_the_queries_that_read_it_alone(tree, ended):
    tree.tier("demo").table("leverage").write_text("not Parquet")
    assert ended("SELECT count(*) FROM sparsity")[0] == 0
    code, _, error = ended("SELECT count(*) FROM leverage")
    assert (code, error.count("\n")) == (2, 1)
    assert "leverage.parquet is no readable Parquet file" in error


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_the_query(tree):
    interrupt = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        query(ENDLESS, tree, "demo", seconds=30)
    with pytest.raises(ChildProcessError):  # nothing that it started is left
        os.waitpid(-1, os.WNOHANG)


def test_the_process_ends_by_itself_where_the_one_that_asked_is_gone():
    request = json.dumps({"sql": ENDLESS, "bytes": GIGABYTE, "seconds": 1}).encode() + b"\n"
    done = subprocess.run([sys.executable, confined.__file__], input=request, timeout=20)
    assert done.returncode == -signal.SIGALRM

"""The record of the sweep: states, what is stale, what differs, asking again."""

import json
import re

import pytest

from full_disk import files_of_at_most
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.files.lock import acquire
from moelaws.records.code import PACKAGE, closure, digest, training_code
from moelaws.records.names import find_record, find_records, name_of
from moelaws.records.runs import all_records
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from repository import moelaws


def put(results, run_id, status=None, code="old"):
    folder = results.run(run_id)
    write_json(folder / "config.json", {"seed": len(run_id)})
    write_json(folder / "provenance.json", {"code": code})
    if status:
        write_json(folder / "summary.json", {"status": status})


@pytest.fixture
def results(tmp_path):
    results = Results(tmp_path / "results")
    put(results, "a1", "completed", training_code())
    put(results, "a2", "diverged")
    put(results, "b1")
    return results


def test_states_and_stale_is_what_other_code_made(results):
    code = training_code()
    assert [(r.run_id, r.status, r.is_stale(code)) for r in all_records(results)] == [
        ("a1", "completed", False), ("a2", "diverged", True), ("b1", "interrupted", True),
    ]  # fmt: skip
    with acquire(results.run("b1")):
        assert find_record(results, "b").status == "running"
    (results.run("c1") / "log").mkdir(parents=True)  # its batch has begun, and it has not
    assert find_record(results, "c").status == "waiting"


def test_a_run_by_the_beginning_of_its_id(results):
    assert find_record(results, "a1").run_id == "a1"
    with pytest.raises(UserError, match="may be any of a1, a2; `moelaws runs` lists them"):
        find_record(results, "a")
    assert [record.run_id for record in find_records(results, "a")] == ["a1", "a2"]
    for unknown in ("c", "", "*", "../a1"):
        with pytest.raises(UserError, match="no such run"):
            find_record(results, unknown)


def test_a_run_by_its_name(results, run_data):
    """Two runs differ in their learning rate alone, and one has another seed."""
    for run_id, lr, seed in (("c1", 3e-3, 0), ("c2", 6e-3, 0), ("c3", 3e-3, 1)):
        data = run_data | {"optimizer": {"lr": lr}, "seed": seed}
        write_json(results.run(run_id) / "config.json", data)
    named = name_of(RunConfig.model_validate(run_data))
    other = named.replace("s0", "s1")
    assert re.fullmatch(r"d32 E8 \d\.\de\d+ s0", named)
    assert find_record(results, other).run_id == "c3"
    with pytest.raises(UserError, match=r"may be any of c1 lr=0\.003, c2 lr=0\.006; "):
        find_record(results, named)
    with pytest.raises(UserError, match="no such run"):
        find_record(results, "d33 E8")
    assert other in moelaws("diff", "c1", other, cwd=results.root.parent).stdout


def test_the_command_line_retries_and_shows(results):
    cwd = results.root.parent
    moelaws("runs", "--retry", cwd=cwd)
    assert not results.summary("a2").exists()
    assert results.summary("a1").exists()
    shown = json.loads(moelaws("show", "a1", "--json", cwd=cwd).stdout)
    assert shown["summary"] == {"status": "completed"}
    missing = moelaws("show", "zz", cwd=cwd)
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr


def test_closure_follows_imports_and_stops_at_them():
    paths = {str(path.relative_to(PACKAGE)) for path in closure("moelaws.grids.expand")}
    assert {"grids/expand.py", "grids/derive.py", "spec/run.py", "accounting/flops.py"} <= paths
    others = {"training/loop.py", "fitting/fit.py", "tables/aggregate.py"}
    assert all((PACKAGE / path).is_file() for path in others)
    assert not others & paths
    assert PACKAGE / "tasks/olmo.toml" in closure("moelaws.tasks.sources")  # beside a module
    assert digest(closure("moelaws.grids.expand")) != digest(closure("moelaws.grids.derive"))


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "f.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="Out of range"):
        write_json(path, {"a": float("nan")})
    with files_of_at_most(1000), pytest.raises(UserError) as error:
        write_json(path, {"x": "x" * 100_000})
    assert str(error.value) == f"{path}: cannot be written: File too large"
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]

"""The list of runs and what selects some of them."""

import json

import pytest

from command_line import call, printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.tables.query import query

LOSSES = {1: (3.0, 3.2, 3.4), 2: (2.5, 2.7)}  # by width: one a seed


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for width, losses in LOSSES.items():
        for seed, loss in enumerate(losses):
            folder = Results().run(f"w{width}s{seed}")
            # A default, such as seed 0, stands in no configuration.
            config = {"model": {"d_model": width}} | ({"seed": seed} if seed else {})
            write_json(folder / "config.json", config)
            summary = {"status": "completed", "loss": loss, "tokens": 10 * seed}
            write_json(folder / "summary.json", summary)
    write_json(Results().run("x") / "config.json", {"model": {"d_model": 2}, "seed": 9})
    write_json(Results().run("x") / "summary.json", {"status": "diverged", "loss": None})


def ids(*words):
    return [run["run_id"] for run in json.loads(printed("runs", *words, "--json"))]


def test_an_expression_selects_by_headings_and_keys():
    assert ids("--where", "L < 3.1 and tokens >= 10") == ["w2s1"]
    assert ids("--where", "d_model == 2 and seed == 0") == ["w2s0"]
    assert ids("--where", "config.model.d_model == 2 and summary.loss > 2.6") == ["w2s1"]
    assert ids("--where", "status == completed and L < seconds") == ids("--where", "L < seconds")
    assert ids("--where", "status == 'diverged'") == ["x"]
    assert ids("--where", "L != 3.0") == ["w1s1", "w1s2", "w2s0", "w2s1"]  # none without a loss


def test_a_mistake_is_told():
    with pytest.raises(UserError, match="no run has a column 'sed'; did you mean seed"):
        call("runs", "--where", "sed < 3")


def test_sql_reads_the_same_columns():
    sql = "SELECT id, L FROM runs WHERE L < 3.1 AND tokens >= 0 ORDER BY L LIMIT 2"
    assert query(sql, Results(), "demo").rows == [["w2s0", 2.5], ["w2s1", 2.7]]

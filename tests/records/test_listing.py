"""The list of runs: filters, order and columns."""

import json

import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError

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


def runs(*words):
    done = CliRunner().invoke(cli, ["runs", *words, "--json"])
    if done.exception:
        raise done.exception
    return json.loads(done.output)


def ids(*words):
    return [run["run_id"] for run in runs(*words)]


def test_an_expression_selects_by_headings_keys_and_their_last_words():
    assert ids("--where", "L < 3.1 and tokens >= 10") == ["w2s1"]
    assert ids("--where", "d_model == 2 and seed == 0") == ["w2s0"]
    assert ids("--where", "config.model.d_model == 2 and summary.loss > 2.6") == ["w2s1"]
    assert ids("--where", "status == completed and L < seconds") == ids("--where", "L < seconds")
    assert ids("--where", "status == 'diverged'") == ids("--status", "diverged")
    assert ids("--where", "loss != 3.0") == ["w1s1", "w1s2", "w2s0", "w2s1"]  # none without a loss


def test_the_order_is_that_of_a_column_and_what_lacks_it_comes_last():
    assert ids("--sort", "L") == ["w2s0", "w2s1", "w1s0", "w1s1", "w1s2", "x"]
    assert ids("--sort", "L", "--descending")[:1] == ["w1s2"]
    assert ids("--sort", "L", "--descending")[-1:] == ["x"]


def test_the_columns_are_those_that_are_named():
    assert runs("--where", "tokens == 20", "--columns", "L,seed") == [{"L": 3.4, "seed": 2}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--where", "los < 3"), "no run has a column 'los'; did you mean loss"),
        (("--where", "status == 1"), "status has words, and no number such as 1.0"),
        (("--where", "L < three"), "L has numbers, and no word such as 'three'"),
        (("--where", "L << 3"), "is not COLUMN OP VALUE"),
        (("--sort", "nothing"), "no run has a column 'nothing'"),
    ],
)
def test_a_mistake_is_told(words, message):
    with pytest.raises(UserError, match=message):
        runs(*words)


def test_columns_are_names():
    told = CliRunner().invoke(cli, ["runs", "--columns", "run_id,,L"])
    assert told.exit_code == 2
    assert "is no list of names with commas between them" in told.output


def test_no_runs_are_an_empty_list(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert runs("--where", "L < 3", "--sort", "L") == []
    assert "0 runs; there is no folder" in CliRunner().invoke(cli, ["runs"]).output

"""The list of runs: filters, order and columns."""

import json

import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.files.atomic import read_json, write_json, write_text
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
        (("--where", "L < three"), "L has numbers, and no word such as 'three'"),
    ],
)
def test_a_mistake_is_told(words, message):
    with pytest.raises(UserError, match=message):
        runs(*words)


def sized(run_data, run_id, seconds, **provenance):
    """Puts a run of whole configuration on record."""
    write_json(Results().run(run_id) / "config.json", run_data)
    summary = {"status": "completed", "loss": 3.21234, "wall_seconds": seconds}
    write_json(Results().run(run_id) / "summary.json", summary)
    write_json(Results().run(run_id) / "provenance.json", {"code": "old", **provenance})


def test_a_list_is_cut_at_its_limit():
    assert ids("--sort", "L", "--limit", "2") == ["w2s0", "w2s1"]
    assert "2 runs of 6" in CliRunner().invoke(cli, ["runs", "--limit", "2"]).output


def test_what_a_sweep_took_is_counted_by_study_and_in_sum(run_data):
    """A run of two studies counts in both and once in sum; GPUs and cores are not added up.

    Steps that a run shares with another one count for that one alone.
    """
    sized(run_data, "aa", 3600, device="cpu", threads=2)
    sized(run_data, "dd", 9000, device="cpu", threads=1)
    of_trunk = read_json(Results().summary("dd")) | {"shared_seconds": 5400}
    write_json(Results().summary("dd"), of_trunk)
    sized(run_data, "bb", 1800, device="NVIDIA H100", devices=4)
    sized(run_data, "cc", 7200, device="NVIDIA H100", gpu_share=0.5)
    for study, own in {"one": ["aa", "bb"], "two": ["bb", "never"]}.items():
        text = "\n".join([study, *(json.dumps([run, 1e20, []]) for run in own)])
        write_text(Results().tier("gpu").spec("runs", study), text)
    hours = {(row["study"], row["device"]): row["hours"] for row in runs("--cost")}
    assert {key: x for key, x in hours.items() if x} == {
        ("one", "CPU core"): 2.0,
        ("one", "NVIDIA H100"): 2.0,
        ("two", "NVIDIA H100"): 2.0,
        ("of no study", "NVIDIA H100"): 1.0,
        ("of no study", "CPU core"): 1.0,
        ("in sum", "CPU core"): 3.0,
        ("in sum", "NVIDIA H100"): 3.0,
    }
    assert "NVIDIA H100" in CliRunner().invoke(cli, ["runs", "--cost"]).output

"""Which records tell this machine's speed, and that the estimate of a grid rests on them."""

import json
import shutil

import pytest
from click.testing import CliRunner

from moelaws.accounting.cost import CPU, H100
from moelaws.cli import cli
from moelaws.grids.timings import timings
from moelaws.records.files import write_json, write_text
from moelaws.records.layout import Results
from moelaws.records.provenance import collect
from repository import REPOSITORY

CALL = ("grid", "sparsity", "--set", "corpus=text.txt")
HERE = {**collect(), "device": "cpu", "threads": 1, "resumed_from": []}


@pytest.fixture
def project(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    (tmp_path / "text.txt").write_text("a text\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def moelaws(*words):
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def record(run_id, seconds, **made_by):
    folder = Results().run(run_id)
    write_text(folder / "config.json", moelaws(*CALL, "--run", run_id))
    write_json(folder / "provenance.json", HERE | made_by)
    write_json(folder / "summary.json", {"status": "completed", "wall_seconds": seconds})


def test_the_estimate_follows_the_runs_that_this_machine_has_finished(project):
    before = json.loads(moelaws(*CALL, "--json"))
    assert "finished runs" not in moelaws(*CALL)
    for row in before[:8]:
        record(row["run_id"], 5 * (row["estimated_seconds"] - CPU.startup_seconds))
    after = json.loads(moelaws(*CALL, "--json"))
    for old, new in zip(before, after, strict=True):
        training = old["estimated_seconds"] - CPU.startup_seconds
        assert new["estimated_seconds"] == pytest.approx(CPU.startup_seconds + 5 * training)
    assert "from 8 finished runs in results/, which this machine trained" in moelaws(*CALL)


@pytest.mark.parametrize(
    "made_by",
    [
        {"host": "another"},
        {"cpu": "another"},
        {"device": "NVIDIA H100 80GB HBM3"},
        {"threads": 2},
        {"resumed_from": [{"host": "another"}]},
    ],
)
def test_runs_of_other_machines_and_interrupted_ones_tell_nothing(project, made_by):
    run_id = json.loads(moelaws(*CALL, "--json"))[0]["run_id"]
    record(run_id, 10.0)
    assert len(timings(Results(), CPU)) == 1
    record(run_id, 10.0, **made_by)
    assert timings(Results(), CPU) == []
    assert len(timings(Results(), H100)) == ("device" in made_by)

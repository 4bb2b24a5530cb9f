"""What is set side by side: laws, runs, and files with what asks for them."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import call, printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.grids.sweep import expand_study
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project, load_study
from moelaws.training.evaluation import DocumentLosses
from repository import REPOSITORY


def compare(refs, *options):
    """The table that README fits, of dense models: it has no number of experts."""
    mapping = ("--map", "N=params", "--map", "D=tokens", "--map", "L=loss")
    words = (REPOSITORY / "docs/losses.csv", "--laws", refs, "--bootstrap", "2", *mapping)
    return call("compare", *words, *options)


def test_a_law_that_is_refused_leaves_the_others():
    done = compare("wang.loss,chinchilla,sparsity.loss", "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert [law["law"] for law in data["laws"]] == ["chinchilla"]
    assert data["laws"][0]["aic_excess"] == 0
    assert list(data["refused"]) == ["wang.loss", "sparsity.loss"]
    assert "no column 'E' for E of wang.loss" in data["refused"]["wang.loss"]
    assert f"wang.loss is refused: {data['refused']['wang.loss']}\n" in done.stderr
    with pytest.raises(UserError, match=r"no law can be fitted; wang.loss: no column 'E'.*"):
        compare("wang.loss,sparsity.loss")


# Differences of -5, -30 and 10 nats; -25 / 600 a token; residuals -5/6, -17.5 and 18.33.
ERROR = np.sqrt(3 / 2 * ((5 / 6) ** 2 + 17.5**2 + (55 / 3) ** 2)) / 600


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens = np.array([100, 300, 200])
    for run, nats in (("first", [300.0, 900.0, 800.0]), ("second", [305.0, 930.0, 790.0])):
        folder = Results().run(run)
        write_json(folder / "summary.json", {"status": "completed", "loss": sum(nats) / 600})
        documents = DocumentLosses(np.arange(3), tokens, np.array(nats))
        documents.write(folder / "documents.parquet")
    return Results()


diff = partial(printed, "diff", "first", "second")


def test_the_difference_of_two_losses_has_its_paired_error(runs):
    shown = f"-0.0417 nats/token, standard error {ERROR:.2g} (paired, over 3 documents"
    assert f"loss of first less that of second: {shown}" in diff()
    data = json.loads(diff("--json"))
    assert data["summary.loss"] == [2000 / 600, 2025 / 600]
    assert data["loss_difference"] == {
        "value": pytest.approx(-25 / 600),
        "standard_error": pytest.approx(ERROR),
        "unit": "nats/token",
        "documents": 3,
    }


def test_three_runs_are_compared_with_the_first(runs):
    write_json(runs.summary("third"), {"status": "completed", "loss": 2000 / 600})
    data = json.loads(diff("third", "--json"))
    assert data["summary.loss"] == [2000 / 600, 2025 / 600, 2000 / 600]
    second, third = data["loss_difference"]
    assert second["value"] == pytest.approx(-25 / 600)
    assert "third has no losses by document" in third["unpaired"]


def test_runs_that_cannot_be_paired_say_why(runs):
    other = DocumentLosses(np.arange(3), np.array([100, 200, 300]), np.ones(3))
    other.write(runs.run("second") / "documents.parquet")
    reason = "runs first and second were not measured on the same documents"
    assert f"the difference of the losses has no paired error: {reason}" in diff()
    assert json.loads(diff("--json"))["loss_difference"] == {"unpaired": reason}


@pytest.mark.slow
def test_a_file_of_a_run_that_no_tier_asks_for_is_orphaned(project_folder):
    project = load_project(overrides={"tier": "paper"})
    run = expand_study(load_study("leverage"), project).runs[-1].run_id
    stray = "0123456789abcdef"
    for name in (run, stray):
        path = Results().scores(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"score": [1.0]}), path)
    verdicts = json.loads(printed("verify", "--json"))
    states = {verdict["path"]: verdict["state"] for verdict in verdicts}
    assert states[str(Results().scores(run))] == "unverified"
    assert states[str(Results().scores(stray))] == "orphaned"

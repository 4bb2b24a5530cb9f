"""What is set side by side: laws, runs, and files with what asks for them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import call, printed
from moelaws import laws
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.grids.sweep import expand_study
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project, load_study
from moelaws.training.evaluation import DocumentLosses


@pytest.fixture
def table(tmp_path):
    """Losses of dense models that follow chinchilla's form: they have no number of experts."""
    points = [(n * 1e6, d * 1e7) for n in (1, 3, 9, 27) for d in (2, 5, 20, 60)]
    lines = [f"{N},{D},{1.7 + 400 / N**0.35 + 800 / D**0.37}" for N, D in points]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["N,D,L", *lines]) + "\n")
    return path


def compare(table, refs, *options):
    return call("compare", table, "--laws", refs, "--bootstrap", "2", *options)


@pytest.mark.parametrize("holdout", [[], ["--holdout", "D>5e8"]])
def test_a_law_that_is_refused_leaves_the_others(table, holdout):
    done = compare(table, "wang.loss,chinchilla,sparsity.loss", *holdout, "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert [law["law"] for law in data["laws"]] == ["chinchilla"]
    assert data["laws"][0]["aic_excess"] == 0
    assert list(data["refused"]) == ["wang.loss", "sparsity.loss"]
    assert "no column 'E' for E of wang.loss" in data["refused"]["wang.loss"]
    assert f"wang.loss is refused: {data['refused']['wang.loss']}\n" in done.stderr


def test_where_every_law_is_refused_there_is_nothing_to_compare(table):
    with pytest.raises(UserError, match=r"no law can be fitted; wang.loss: no column 'E'.*") as no:
        compare(table, "wang.loss,sparsity.loss")
    assert "sparsity.loss: no column 'S'" in str(no.value)
    assert str(no.value).count("\n") == 0


def test_a_law_whose_prediction_of_the_held_out_rows_is_open_is_named(tmp_path):
    """Dense runs alone say nothing of experts: whatever exponent these have, it fits."""
    law = laws.get("clark.routing")
    points = [(n * 1e7, E) for n in (1, 2, 4, 9, 20, 45, 100) for E in (1, 2, 4, 8, 32)]
    N, E = np.array(points).T
    noise = np.exp(0.003 * np.random.default_rng(0).standard_normal(len(points)))
    L = law.predict(law.published, {"N_active": N, "E": E}) * noise
    path = tmp_path / "routed.csv"
    pd.DataFrame({"N_active": N, "E": E, "C": 1e3 * N**2, "L": L}).to_csv(path, index=False)
    given = ("--map", "N=N_active", "--map", "D=C", "--holdout", "E>1", "--json")
    data = json.loads(compare(path, "clark.routing,wang.loss,leverage.curve", *given).stdout)
    reason = data["refused"]["clark.routing"]
    assert reason == (
        "the 7 rows cannot determine a, b, c, d, E_start and E_max of clark.routing: all have "
        "E = 1; add rows that vary"
    )
    assert "cannot determine" in data["refused"]["wang.loss"]
    assert [law["law"] for law in data["laws"]] == ["leverage.curve"]


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


def diff(*words):
    return printed("diff", "first", "second", *words)


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
    assert "summary.status" not in data  # it is the same in all
    assert [d["run"] for d in data["loss_difference"]] == ["second", "third"]
    assert data["loss_difference"][0]["value"] == pytest.approx(-25 / 600)
    assert "third has no losses by document" in data["loss_difference"][1]["unpaired"]
    assert "third" in diff("third").splitlines()[0]


@pytest.mark.parametrize("other_documents", [False, True])
def test_runs_that_cannot_be_paired_say_why(runs, other_documents):
    path = runs.run("second") / "documents.parquet"
    path.unlink()
    reason = "run second has no losses by document: it was trained before they were kept"
    if other_documents:
        DocumentLosses(np.arange(3), np.array([100, 200, 300]), np.ones(3)).write(path)
        reason = "runs first and second were not measured on the same documents"
    assert "summary.loss" in diff()
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

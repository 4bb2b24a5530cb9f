"""What differs between two runs, and by how much their losses do."""

import json

import numpy as np
import pytest

from command_line import call, printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.training.evaluation import DocumentLosses

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


@pytest.mark.parametrize("words", [["first"], ["first", "first"], ["first", "second", "first"]])
def test_fewer_than_two_runs_have_no_difference(runs, words):
    with pytest.raises(UserError, match="two different runs or more"):
        call("diff", *words)


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

"""What differs between two runs, and by how much their losses do."""

import numpy as np
import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.records.files import write_json
from moelaws.records.layout import Results
from moelaws.training.evaluation import DocumentLosses


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


def diff():
    result = CliRunner().invoke(cli, ["diff", "first", "second"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_difference_of_two_losses_has_its_paired_error(runs):
    # Differences of -5, -30 and 10 nats; -25 / 600 a token; residuals -5/6, -17.5 and 18.33.
    error = np.sqrt(3 / 2 * ((5 / 6) ** 2 + 17.5**2 + (55 / 3) ** 2)) / 600
    shown = f"-0.0417 nats/token, standard error {error:.2g} (paired, over 3 documents"
    assert f"loss of first less that of second: {shown}" in diff()


def test_runs_of_before_show_what_they_did(runs):
    (runs.run("second") / "documents.parquet").unlink()
    assert "summary.loss" in diff()
    assert "paired" not in diff()

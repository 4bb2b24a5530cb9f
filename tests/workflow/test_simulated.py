"""`--config source=simulated`: a law in place of training, marked on all that it makes."""

import json

import pyarrow.parquet as pq
import pytest

from sweep_copy import Copy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    copy = Copy.of_repository(tmp_path_factory.mktemp("simulated"))
    study = copy.study()
    study["simulation"] = {"law": "sparsity.loss", "mapping": {"N": "N_total"}, "noise": 0.003}
    copy.write_study(study)
    copy.snakemake("--config", "source=simulated", "tier=demo")
    return copy


def test_nothing_is_trained_and_everything_says_so(simulated):
    folder = simulated.root / "results/demo/simulated"
    assert simulated.summaries() == []
    assert set(pq.read_table(folder / "tables/sparsity.parquet")["source"].to_pylist()) == {
        "simulated"
    }
    assert json.loads((folder / "fits/sparsity/loss.json").read_text())["source"] == "simulated"
    assert "SIMULATED DATA" in (folder / "figures/sparsity/T3.md").read_text()
    assert "**From simulated data**" in (folder / "claims.md").read_text()
    assert not (simulated.root / "results/demo/tables").exists()


def test_it_is_made_once(simulated):
    assert simulated.planned("--config", "source=simulated", "tier=demo") == {}
    trained = simulated.planned()
    assert trained["train"] > 1
    assert "18 runs will train" in simulated.snakemake("-n").stderr
    assert trained["fit"] == len(simulated.study()["fits"])


def test_a_study_without_a_law_says_so(simulated):
    study = simulated.study()
    study.pop("simulation")
    simulated.write_study(study)
    done = simulated.snakemake("-n", "--config", "source=simulated", check=False)
    assert done.returncode != 0
    assert "no law of sparsity is to be simulated" in done.stderr

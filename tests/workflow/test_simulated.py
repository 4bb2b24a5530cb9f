"""`--config source=simulated`: a law in place of training, marked on all that it makes."""

import json
import re

import pyarrow.parquet as pq
import pytest

from sweep_copy import Copy

pytestmark = pytest.mark.slow

CONFIG = ("--config", "source=simulated", "tier=demo")
STUDY = "src/moelaws/studies/sparsity"
FIGURES = "results/demo/simulated/figures/sparsity"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    copy = Copy.of_repository(tmp_path_factory.mktemp("simulated"))
    study = copy.study()
    study["simulation"] = {"law": "sparsity.loss", "mapping": {"N": "N_total"}, "noise": 0.003}
    copy.write_study(study)
    copy.snakemake(*CONFIG)
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
    assert simulated.planned(*CONFIG) == {}
    trained = simulated.planned("--config", "batch_minutes=0")
    assert trained["train"] == 18
    assert "18 runs will train" in simulated.snakemake("-n").stderr
    assert trained["fit"] == len(simulated.study()["fits"])


def drawn(copy, *words):
    """The pictures that a call draws; a further call finds nothing to do."""
    copy.snakemake(*(words or ("figures",)), *CONFIG)
    assert copy.planned("figures", *CONFIG) == {}
    log = copy.root / "results/logs/demo/simulated/drawn/sparsity/draw.log"
    return set(re.findall(r"^(\w+): drawn$", log.read_text(), re.M))


def test_pictures_are_drawn_again_one_by_one(simulated):
    """Of an edited entry, edited code, and files that a user deleted or changed."""
    root, study = simulated.root / FIGURES, simulated.study()
    study["figures"][0]["caption"] += " Well."
    simulated.write_study(study)
    assert drawn(simulated) == {study["figures"][0]["name"]}
    simulated.edit(f"{STUDY}/figures/optima.py", r"\Z", "\n# Edited.\n")
    entries = [*study["figures"], *study["tables"]]
    assert drawn(simulated) == {e["name"] for e in entries if "figures.optima:" in str(e)}
    (root / "F3a.png").unlink()
    assert drawn(simulated) == {"F3a"}
    (root / "F11.csv").write_text("1\n")  # which Snakemake does not see
    assert drawn(simulated, "--force", f"{FIGURES}/F11.pdf") == {"F11"}


def test_a_picture_that_cannot_be_drawn_hides_no_other(simulated):
    root = simulated.root / FIGURES
    (root / "F3a.png").unlink()
    broken = "\ndef inside(inputs: Inputs, size: str) -> pd.DataFrame: return 1 / 0\n"
    with simulated.edited(f"{STUDY}/figures/optima.py", r"\Z", broken):
        done = simulated.snakemake("figures", "-k", *CONFIG, check=False)
    assert done.returncode != 0
    assert "the job place_figure sparsity F4 failed; its log ends so" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert (root / "F3a.png").exists()
    assert not (root / "F4.png").exists()
    drawn(simulated)
    assert (root / "F4.png").exists()
    assert not (root.parents[1] / "drawn").exists()

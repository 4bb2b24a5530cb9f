"""A contest of laws from its entry to the page: checked first, judged, sealed, set in words."""

import json
from pathlib import Path

import pytest
import yaml

from command_line import call
from moelaws.files.layout import Results
from moelaws.records.chain import link
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.workflow.check import check_study
from moelaws.workflow.verify import Verification
from repository import REPOSITORY

TABLE = "src/moelaws/studies/routing/data/runs.parquet"
SHORT = {
    "name": "short",
    "laws": ["clark.dense", "chinchilla", "leverage.loss", "allocation.loss"],
    "rows": "k_source == 1 and routing_frequency == 0.5 and E <= 8",
    "mapping": {"N": "N_dense", "N_active": "N_dense"},
    "protocol": {"objective": "squared", "sample": 200},
    "bootstrap": 20,
    "resample_by": "N_dense",
    "splits": [{"name": "largest", "largest": "N_dense", "use": "larger dense models"}],
}


@pytest.fixture
def study(tmp_path):
    """A function that writes the study ``routing`` with one contest, and gives its file."""
    data = yaml.safe_load((REPOSITORY / "config/studies/routing.yaml").read_text())
    kept = {key: data[key] for key in ("title", "imported")}
    path = tmp_path / "study.yaml"

    def write(**changes):
        own = kept | {"study": "theirs", "contests": [SHORT | changes]}
        path.write_text(yaml.safe_dump(own | {"package": "moelaws.studies.routing"}))
        return path

    return write


@pytest.mark.slow
def test_from_the_entry_to_the_page(study, tmp_path, root):
    folder = Results(tmp_path / "results").tier("demo")
    path, page = folder.contest("theirs", "short"), tmp_path / "laws.md"
    done = call("make", "contests", study(), "short", "--table", TABLE, "--out", path, "--json")
    data = json.loads(done.stdout)
    (split,) = data["splits"]
    assert link(path).state == "whole"
    assert [below.path for below in link(path).inputs] == [Path(TABLE)]
    assert call("contests", path, "--out", page).output == f"{page}\n"
    best, *_ = split["laws"]
    laws = {law["law"] for law in split["laws"]}
    assert laws == {"clark.dense", "chinchilla:reduced", "leverage.loss:reduced"}
    row = f"| larger dense models | [theirs](#theirs-short) | `{best['law']}` |"
    assert row in page.read_text()
    verification = Verification(Results(tmp_path / "results"), {"theirs": load_study(str(study()))})
    (verdict,) = verification.tier(folder)
    assert (verdict.kind, verdict.state, verdict.reason) == ("contests", "whole", "")
    path.write_text(path.read_text().replace('"n": 1', '"n": 2', 1))
    (verdict,) = verification.tier(folder)
    assert verdict.state == "damaged"
    with pytest.raises(UserError, match="a judged contest of laws is damaged"):
        call("contests", path, "--out", page)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"laws": ["chinchilla", "no.law"]}, "unknown law 'no.law'"),
        ({"mapping": {"Q": "N_dense"}}, "'Q' is not a variable of any of"),
        ({"rows": "size_of == 1"}, "no column 'size_of'; there are A, D, E"),
        ({"laws": ["chinchilla", "chinchilla"]}, "one is named twice"),
        ({"laws": ["chinchilla", "leverage.joint"]}, "predict different quantities"),
    ],
)
def test_a_mistake_is_refused_before_anything_runs(study, changes, message):
    with pytest.raises(UserError, match=message):
        check_study(load_study(str(study(**changes)), REPOSITORY))

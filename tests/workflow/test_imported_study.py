"""A study of published runs in the workflow: its table is taken, checked, and verified."""

import shutil
from pathlib import Path

import pytest
import yaml

from command_line import call
from moelaws.files.layout import Results
from moelaws.records.chain import link
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.tables.parquet import read_study
from moelaws.workflow.check import check_study
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.trainings import Trainings
from moelaws.workflow.verify import Verification
from repository import REPOSITORY

DATA = "moelaws/studies/routing/data"


def test_the_table_of_published_runs_is_that_of_every_tier(project_folder):
    jobs = Jobs.load({"studies": "routing", "tier": "paper"}, project_folder)
    assert jobs.tables() == [Path("results/paper/tables/routing.parquet")]
    assert jobs.runs == {}
    inputs = Trainings(jobs).table_inputs("routing")
    names = [path.as_posix().partition("src/")[2] for path in inputs]
    assert names == [f"{DATA}/runs.parquet", f"{DATA}/runs.yaml"]
    code = [Path(file).name for file in jobs.code("runs", "routing")]
    assert "imported.py" in code
    assert "aggregate.py" not in code
    (curves,) = jobs.read_by("derived", "routing", "curves")["data"]
    assert curves.as_posix().endswith(f"{DATA}/curves.csv.gz")


def test_a_taken_table_is_whole_and_leads_back_to_the_authors_file(root, tmp_path):
    results = Results(tmp_path / "results")
    table = results.tier("demo").table("routing")
    done = call("make", "runs", "routing", "--out", table)
    assert done.output == f"{table}: 223 runs (223 imported)\n"
    # A derived table that has the name of a figure.
    curves = results.tier("demo").derived("routing", "curves")
    words = ["routing", "curves", "--table", table, "--out", curves]
    assert call("make", "derived", *words).exit_code == 0
    verification = Verification(results, {"routing": load_study("routing")})
    verdicts = {(v.kind, v.state, v.reason) for v in verification.tier(results.tier("demo"))}
    assert verdicts == {("tables", "whole", ""), ("derived", "whole", "")}
    shipped = next(below for below in link(table).inputs if below.path.suffix == ".parquet")
    assert shipped.origin.imported["file"] == "curves.csv.gz"
    assert read_study(table).equals(read_study(shipped.path))
    assert "CC-BY-4.0" in call("show", table).output


@pytest.fixture
def own(tmp_path):
    """A user's own study of imported runs, the published ones under another name."""
    package = tmp_path.name  # another one in each test: Python imports a package of a name once
    shutil.copytree(REPOSITORY / "src" / DATA, tmp_path / package)
    (tmp_path / package / "__init__.py").touch()
    data = yaml.safe_load((REPOSITORY / "config/studies/routing.yaml").read_text())
    study = {"study": "theirs", "package": package, "title": "x", "fits": data["fits"][:1]}
    study["imported"] = {"table": "runs.parquet", "mapping": "runs.yaml"}
    path = tmp_path / "study.yaml"

    def load(**changes):
        path.write_text(yaml.safe_dump(study | changes))
        return load_study(str(path), REPOSITORY)

    load.folder = tmp_path / package
    return load


def test_a_fit_of_a_column_that_the_mapping_leaves_empty_is_refused_before_anything_runs(own):
    """An imported table has every column of a study's table; what is derived needs none."""
    mapping = {"N_active": "N_dense"}
    fit = {"name": "loss", "law": "leverage.loss", "mapping": mapping}
    check_study(own(fits=[{**fit, "rows": "C > 1e18", "resample_by": "run_id"}]))
    dense = {"law": "clark.dense", "mapping": {"N": "N_dense"}, "rows": "C > 1e18"}
    for changes in ({"mapping": {**mapping, "C": "C"}}, {"weights": "L_se"}, dense):
        with pytest.raises(UserError, match=r"no column .*; there are .*N_dense"):
            check_study(own(fits=[fit | changes]))


def test_a_table_of_another_mapping_is_not_taken(own, tmp_path, root):
    source, mapping, table = (
        own.folder / f"{n}" for n in ("curves.csv.gz", "runs.yaml", "runs.parquet")
    )
    mapping.write_text(mapping.read_text().replace("study: routing", "study: theirs"))
    own()
    words = ["make", "runs", tmp_path / "study.yaml", "--out", tmp_path / "t.parquet"]
    with pytest.raises(UserError, match="no imported table of the study theirs; make it again: mo"):
        call(*words)
    assert call("import", source, "--mapping", mapping, "--out", table).exit_code == 0
    assert call(*words).exit_code == 0
    mapping.write_text(mapping.read_text().replace("FROM source", "FROM source WHERE step > 0"))
    with pytest.raises(UserError, match=r"was imported by another mapping than .*runs.yaml is now"):
        call(*words)


def test_a_study_of_the_register_needs_its_first_table(project_folder):
    """By name it is refused in one sentence; among all studies it is left out with one."""
    reason = "study public: results/imported/marin-v16.parquet is not here; run moelaws import "
    with pytest.raises(UserError, match=reason + "marin-v16$"):
        Jobs.load({"studies": "public"})
    jobs = Jobs.load({"studies": "all"})
    assert "public" not in jobs.studies
    assert [line for line in jobs.left_out if "public" in line] == [reason + "marin-v16"]


def test_what_a_table_of_the_register_alone_serves_is_left_out_without_it(project_folder):
    """The table's other rows are of the data sets that are here, so that splits need no word."""
    for name in ("marin-v16", "farseer"):
        path = Results().imported(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    jobs = Jobs.load({"studies": "public"})
    study = jobs.studies["public"]
    assert "repeated" not in {fit.name for fit in study.fits}
    assert {"free", "chinchilla", "size"} <= {fit.name for fit in study.fits}
    (line,) = jobs.left_out
    assert line.startswith("public: of the register marin-it02, marin-ladder, marin-lr, ")
    assert line.endswith("so these are left out: experts, repeated")
    Results().imported("data-constrained").touch()
    assert "repeated" in {
        fit.name for fit in Jobs.load({"studies": "public"}).studies["public"].fits
    }

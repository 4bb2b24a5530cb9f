"""What each job reads and depends on, as the rules ask for it, and which trials of rules are
shipped; Snakemake itself runs elsewhere."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from moelaws.files.layout import Results
from moelaws.files.trials import SHIPPED, trial
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.workflow.code import of_explore
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.trainings import Trainings
from repository import REPOSITORY


@pytest.fixture(scope="module")
def jobs():
    return Jobs.load({"studies": "all", "source": "simulated"}, REPOSITORY)


@pytest.fixture(scope="module")
def trained():
    return Jobs.load({"studies": "all"}, REPOSITORY)


def test_a_folder_that_snakemake_takes_for_a_wildcard_is_refused(tmp_path):
    shutil.copytree(REPOSITORY / "config", tmp_path / "{a}/config")
    with pytest.raises(UserError, match=r"\{a\}: Snakemake takes braces in a path for wildcards"):
        Jobs.load({}, tmp_path / "{a}")


def names(files):
    """Paths below the package, of source files as jobs name them."""
    return {Path(file).as_posix().rpartition("/moelaws/")[2] for file in files}


def code(jobs, study, kind, name):
    return names(jobs.code(kind, study, name))


def test_code_depends_on_the_laws_that_it_evaluates(jobs):
    """Of a fit on the law that gives a variable, of a figure on that which its report names."""
    assert "studies/allocation/laws/ratio.py" in code(jobs, "allocation", "fits", "loss")
    assert "laws/wang/loss.py" in code(jobs, "sparsity", "figures", "baselines")
    assert "laws/wang/loss.py" not in code(jobs, "sparsity", "figures", "F6a")


def test_what_an_entry_asks_for_is_a_file_that_is_written_when_it_changes(jobs, tmp_path):
    jobs = replace(jobs, results=Results(tmp_path))
    path = jobs.entry_spec("fits", "sparsity", "loss")
    before = path.stat().st_mtime_ns
    assert jobs.entry_spec("fits", "sparsity", "loss").stat().st_mtime_ns == before
    study = jobs.studies["sparsity"]
    fits = tuple(
        f.model_copy(update={"bootstrap": 7}) if f.name == "loss" else f for f in study.fits
    )
    studies = {**jobs.studies, "sparsity": study.model_copy(update={"fits": fits})}
    changed = replace(jobs, studies=studies)
    other = changed.entry_spec("fits", "sparsity", "isoflop_total")
    assert other.read_text() == jobs.entry_spec("fits", "sparsity", "isoflop_total").read_text()
    assert '"bootstrap":7' in changed.entry_spec("fits", "sparsity", "loss").read_text()
    assert path.stat().st_mtime_ns > before


def test_what_is_simulated_lies_apart(jobs, trained):
    assert not {*jobs.tables(), *jobs.fits()} & {*trained.tables(), *trained.fits()}
    assert Trainings(jobs).markers() == []
    assert sum(map(len, Trainings(trained).batches.values())) == len(trained.runs) > 50


def test_a_users_own_study_is_named_by_its_file(tmp_path):
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours/study.yaml"
    path.write_text("study: ours\ntitle: Ours\n")
    jobs = Jobs.load({"studies": ["sparsity", str(path)]}, REPOSITORY)
    assert jobs.studies["ours"].reference == os.path.relpath(path)
    assert jobs.studies["sparsity"].reference == "sparsity"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study: sparsity\ntitle: T\n", "study is 'sparsity', which is taken"),
        ("study: ours\ntitle: T\npackage: json\n", "package: package json is "),
        (
            'study: ours\ntitle: T\nderived: [{name: best, code: "derived.best:derive"}]\n',
            "package is missing; name the package beside this file",
        ),
    ],
)
def test_a_users_own_study_that_cannot_be(tmp_path, text, message):
    (tmp_path / "json").mkdir()
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        Jobs.load({"studies": [str(tmp_path / "study.yaml")]}, REPOSITORY)
    assert message in str(error.value)
    assert str(tmp_path / "study.yaml") in str(error.value)


def test_the_outlook_asks_trained_fits_to_laws_in_size_and_tokens(jobs, trained, project_folder):
    fits = {path.as_posix().removeprefix("results/demo/fits/") for path in trained.advising_fits()}
    assert fits >= {"sparsity/loss.json", "sparsity/chinchilla.json", "generalization/joint.json"}
    assert not any(name.startswith(("routing/", "leverage/curve")) for name in fits)
    tables = [path.stem for path in trained.advising_tables()]
    assert tables == sorted({name.partition("/")[0] for name in fits})
    assert trained.folder.outlook in trained.reported()
    assert jobs.folder.outlook not in jobs.reported()
    published = Jobs.load({"studies": ["routing"]}, project_folder)  # where nothing was made
    assert published.folder.outlook not in published.reported()


def test_a_tier_makes_what_it_has_sweeps_for_and_says_what_it_leaves_out(trained):
    assert "T_gates" not in {path.stem for path in trained.pictures()}
    public, leverage = trained.left_out
    assert leverage == (
        "leverage: the tier demo has no sweep gates, granularity_sparser, so these are left out: "
        "T_gates, T_granularity_sparser, granularity_sparser"
    )
    assert public.startswith("study public: results/imported/marin-v16.parquet is not here")


def test_the_page_of_a_tier_depends_on_what_it_shows(trained):
    laws = {"studies/sparsity/laws/isoflop.py", "studies/leverage/laws/loss.py"}
    assert {"explore/page.py", "explore/page/index.html", *laws} <= names(
        of_explore(trained.studies.values(), trained.advice)
    )
    shown = set(trained.explored())
    assert {*trained.tables(), *trained.fits(), *trained.pictures(), *trained.verdicts()} <= shown
    assert trained.folder.derived("leverage", "losses") in shown  # a law is fitted to it
    assert trained.folder.draws("sparsity", "loss") in shown


FILES = sorted((REPOSITORY / SHIPPED).glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_trials_are_of_the_present_grid_and_rules(path):
    """If this fails, give `make power STUDY --tier TIER --set power=100 --out` that file."""
    study = load_study(path.stem, REPOSITORY).at_tier(path.parent.name)
    assert json.loads(path.read_text())["trial"] == trial(study, path.parent.name)


def test_another_grid_or_trials_of_its_own_leave_shipped_ones_aside(project_folder):
    shipped = Path("config/power/demo/sparsity.json")
    shipped.parent.mkdir(parents=True, exist_ok=True)
    digest = trial(load_study("sparsity", REPOSITORY).at_tier("demo"), "demo")
    shipped.write_text(json.dumps({"trial": digest}))
    assert Jobs.load({"studies": "sparsity"}).powers() == [shipped]
    made = Jobs.load({"studies": "sparsity", "power": 2})
    assert made.powers() == [made.folder.power("sparsity")]
    study = Path("config/studies/sparsity.yaml")
    study.write_text(study.read_text().replace("d_model: 12, seed: 1", "d_model: 16, seed: 1"))
    assert Jobs.load({"studies": "sparsity"}).powers() == []

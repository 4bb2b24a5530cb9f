"""``moelaws pin``: what it writes, what it refuses, and that grids follow it."""

import json
import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from command_line import printed
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.fitting.report import read_fit
from moelaws.grids.hyperparameters import learning_rate, settled
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Chosen
from moelaws.spec.hyperparameters import choice_of, read_pinned
from moelaws.spec.project import load_project
from moelaws.tables.parquet import read_study, read_table, write_table
from moelaws.tables.schema import COLUMNS, TRAINED_COLUMNS
from repository import REPOSITORY

STUDY = "hyperparameters"
pin = partial(printed, "pin", STUDY)
FILE = Path("config/hyperparameters/demo-gates-over-all.yaml")  # the paper's gates, as searched


@pytest.fixture
def project(searched, tmp_path, monkeypatch):
    """The current folder is a project whose demo tier was searched and fitted."""
    (tmp_path / "config/studies").mkdir(parents=True)
    (tmp_path / "text.txt").write_text("to be held out or not\n" * 20_000)
    (tmp_path / "config/config.yaml").write_text("tier: demo\ncorpus: text.txt\n")
    shutil.copy(REPOSITORY / f"config/studies/{STUDY}.yaml", tmp_path / "config/studies")
    folder = Results(tmp_path / "results").tier("demo")
    searched.put(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_fitted_laws_are_pinned_with_what_they_rest_on(project, searched):
    said = pin()
    assert said == f"{FILE.read_text()}\n{FILE}\n"
    assert "old" not in said
    law = read_fit(searched.fits["lr"]).parts[0]
    pinned = read_pinned("demo", gates="all")
    assert pinned.lr.exponent == pytest.approx(law.params["exponent"].estimate, rel=1e-5)
    low = law.params["coefficient"].low
    assert pinned.lr.coefficient_interval[0] == pytest.approx(low, rel=1e-5)
    source = pinned.provenance
    search = pd.read_parquet(searched.derived["near_optimal"])
    assert (source.study, source.tier, source.searched) == (STUDY, "demo", len(search))
    assert (search["C"].min(), search["C"].max()) == source.C
    assert source.lr.runs == law.n
    assert source.lr.digest == read_fit(searched.fits["lr"]).table["digest"]


def test_pinning_twice_changes_nothing_and_another_fit_does(project):
    pin()
    first = FILE.read_text()
    pin()
    assert FILE.read_text() == first
    data = json.loads(pin("--lr", "lr_both", "--json"))
    assert data["old"]["lr"] != data["new"]["lr"]
    assert data["old"]["batch_tokens"] == data["new"]["batch_tokens"]
    assert "name: lr_both" in FILE.read_text()


def test_grids_follow_it(project):
    def rates():
        runs = json.loads(printed("grid", STUDY, "--json"))
        sizes = [r for r in runs if "sizes" in r["sweep"]]
        return {r["C"]: (r["lr"], r["batch_tokens"]) for r in sizes}, runs

    before, runs = rates()
    pin()
    after, again = rates()
    pinned = read_pinned("demo", gates="all")
    for C, (lr, batch) in after.items():
        assert lr == pytest.approx(pinned.lr.at(C), rel=1e-4)
        assert abs(batch - pinned.batch_tokens.at(C)) <= 64  # half a sequence
    assert before != after
    first, second = (
        {r["run_id"] for r in every if "sizes" not in r["sweep"]} for every in (runs, again)
    )
    assert first == second  # the search does not depend on what it finds


def by_optimizer(path, optimizer):
    """Writes into the search's table that its runs are by ``optimizer``."""
    frame = read_table(path, COLUMNS).assign(optimizer=optimizer)
    (column,) = (column for column in TRAINED_COLUMNS if column.name == "optimizer")
    write_table(frame, (*COLUMNS, column), path, {"study": STUDY})


def test_rates_of_muon_are_not_pinned_as_those_of_adamw(project):
    n = len(read_study(project.table(STUDY)))
    by_optimizer(project.table(STUDY), (["adamw", "muon"] * n)[:n])
    with pytest.raises(UserError, match="fit lr is of runs by Muon"):
        pin()
    assert not FILE.exists()
    by_optimizer(project.table(STUDY), "muon")
    pin("--per", "C")  # of a search of Muon alone, for grids that name it
    assert choice_of(load_project(Path())).rates[STUDY].optimizer == "muon"
    by_optimizer(project.table(STUDY), "adamw")
    pin()
    assert FILE.exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"source": "simulated"}, "rests on simulated losses; only trained ones are pinned"),
        ({"converged": False}, "did not converge"),
    ],
)
def test_what_is_not_pinned(project, values, message):
    path = project.fit(STUDY, "lr")
    write_json(path, read_json(path) | values)
    with pytest.raises(UserError, match=message):
        pin()
    assert not FILE.exists()


def test_best_rates_are_pinned_per_budget_and_width(project):
    data = json.loads(pin("--per", "C", "--per", "d_model", "--json"))
    file = Path("config/hyperparameters/rates/demo-hyperparameters.yaml")
    assert data["file"] == str(file)
    rates = choice_of(load_project(Path())).rates[STUDY]
    table = pd.read_parquet(project.table(STUDY))
    assert rates.runs == len(table)
    assert {row[:2] for row in rates.lr.rows} == set(zip(table["C"], table["d_model"], strict=True))
    asked = Chosen(rule="chosen", search=STUDY)
    rule = settled("lr", asked, choice_of(load_project(Path())), "all", "adamw")
    C, d_model, lr = rates.lr.rows[0]
    assert learning_rate({"C": C, "d_model": d_model}, rule) == lr
    with pytest.raises(UserError, match="the table of lr has no row for"):
        learning_rate({"C": C, "d_model": 1}, rule)

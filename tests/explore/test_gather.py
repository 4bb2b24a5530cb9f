"""What the page shows of the published runs, and of records that are broken or hostile; what is
embedded in it is read back as it was."""

import base64
import gzip
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.explore.material import Material, packed, to_json
from moelaws.explore.page import gather, render
from moelaws.explore.runs import MAX_POINTS, thinned
from moelaws.explore.studies import pages
from moelaws.files.atomic import write_page
from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet, write_parquet
from moelaws.fitting.report import read_fit
from moelaws.grids.sweep import expand_study
from moelaws.records.runs import annotate
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from repository import REPOSITORY


@pytest.fixture(scope="module")
def data(published):
    return gather(published)


def interpolated(law, point):
    """The law at a point, as the page does: linear between the grid's points, in ln of the loss."""
    shape = [len(v["grid"]) for v in law["variables"]]
    values = np.log(np.array(law["mean"], float)).reshape(shape)
    for variable in law["variables"]:
        grid, x = np.array(variable["grid"]), point[variable["name"]]
        if variable["log"]:
            grid, x = np.log(grid), np.log(x)
        i = int(np.clip(np.searchsorted(grid, x) - 1, 0, len(grid) - 2))
        weight = (x - grid[i]) / (grid[i + 1] - grid[i])
        values = values[i] * (1 - weight) + values[i + 1] * weight
    return float(np.exp(values))


@pytest.mark.parametrize("name", ["loss", "wang", "chinchilla"])
def test_a_law_between_the_points_of_its_grid(data, published, name):
    law = next(each for each in data["laws"] if each["id"] == f"sparsity/{name}")
    report = read_fit(published.folder.fit("sparsity", name))
    form, rng = laws.fittable(report.law), np.random.default_rng(0)
    measured = {name: np.array(x) for name, x in law["points"]["values"].items()}
    measured["S"] = 1 - measured.get("S", np.zeros(1))
    sizes = {v["name"]: v["fitted"] for v in law["variables"]}
    if name == "loss":  # the two largest sparsities are held out
        assert sizes["S"] == pytest.approx([0, 0.875])
    errors = []
    for _ in range(200):  # between two runs, for elsewhere nothing was measured
        two = rng.integers(len(law["points"]["L"]), size=2)
        weight = rng.uniform()
        point = {
            name: float(x[two[0] % len(x)] ** weight * x[two[1] % len(x)] ** (1 - weight))
            for name, x in measured.items()
        }
        point["S"] = 1 - point["S"]
        exact = float(form.predict(report.group({}).estimates(), point))
        errors.append(abs(interpolated(law, point) - exact))
    assert np.median(errors) < 0.003  # nats
    assert max(errors) < 0.008
    low, mean, high = (np.array(law[end], float) for end in ("low", "mean", "high"))
    assert np.mean((low <= mean) & (mean <= high)) > 0.9


def test_each_run_is_a_row_and_its_loss_is_that_of_the_table(data, published):
    table = pd.read_parquet(published.folder.table("sparsity"))
    columns = {each["name"]: each for each in data["runs"]["columns"]}
    assert data["runs"]["count"] == len(table) == len(data["details"])
    assert columns["L"]["values"] == table["L"].tolist()
    codes = columns["run_id"]["codes"]
    assert [columns["run_id"]["levels"][i] for i in codes] == table["run_id"].tolist()
    assert columns["L"]["unit"] == "nats/token"
    codes = columns["name"]["codes"]
    assert columns["name"]["levels"][codes[0]] == "d24 E2 1e12 s0"
    for series in data["isoflop"][0]["series"]:
        assert table["L"].iloc[series["run"]].tolist() == pytest.approx(series["L"], rel=1e-6)
        best = series["optimum"]
        assert best["L"] == pytest.approx(min(series["curve"]["mean"]))
        assert best["low"] < best["L"] < best["high"]


def test_the_page_opens_with_the_words_of_other_pages_and_not_with_undeclared_ones(data, published):
    """The conftest's outlook.md lies in the folder as a call for another study leaves it there."""
    assert (published.folder.root / "outlook.md").is_file()
    (laws_page,) = data["pages"]
    assert laws_page["href"] == "laws.md"
    assert "<h3>Which law to use (workstation tier)</h3>" in laws_page["html"]
    assert '<a href="laws.md">sparsity</a>' in laws_page["html"]
    assert "<code>joint.loss</code>" in laws_page["html"]


def test_figures_stand_in_the_order_in_which_people_count(data):
    names = [figure["name"] for figure in data["studies"][0]["figures"]]
    assert names.index("F9") < names.index("F11") < names.index("F12") < names.index("time")


def test_markup_in_a_page_stays_text(own):
    text = "# <img src=x>\n\n[a](javascript:alert(1)) ![b](http://c/d.png)\n"
    write_page(own.folder.laws, text)
    (shown,) = pages(own)
    assert "<img" not in shown["html"]
    assert "href" not in shown["html"].replace('href="http://c/d.png"', "")
    own.folder.laws.write_text(text)  # its seal was cut off
    assert [*pages(own)] == []
    assert "laws.md has no seal" in own.notes[-1]


def with_runs(material, run_ids):
    """The table with the first rows under other identities."""
    path = material.folder.table("sparsity")
    table = read_parquet(path)
    ids = [*run_ids, *table["run_id"].to_pylist()[len(run_ids) :]]
    column = table.schema.get_field_index("run_id")
    write_parquet(path, table.set_column(column, table.schema.field(column), [ids]))


@pytest.mark.slow
def test_broken_and_hostile_records_break_no_page(own, record):
    message = "</script><img src=x onerror=alert(1)>"
    whole, broken = record(1, message), record(2)
    with_runs(own, [whole, broken])
    (own.results.run(broken) / "summary.json").write_text("{")
    (own.results.run(whole) / "history.parquet").write_bytes(b"no table")
    data = gather(own)
    assert data["details"][0]["config"] == {"seed": 1}
    assert data["details"][1] == {}
    assert any(f"left out (1): {broken}" in note for note in data["notes"])
    assert any("history.parquet" in note for note in data["notes"])
    messages = next(each for each in data["runs"]["columns"] if each["name"] == "message")
    assert messages["levels"] == [message]
    page = render(data)
    assert message not in page
    embedded = re.search(r'id="data">([^<]*)</script>', page)[1]
    assert json.loads(gzip.decompress(base64.b64decode(embedded))) == json.loads(to_json(data))


def test_every_study_lends_itself_to_an_empty_page(own):
    """Published runs and studies without runs are gathered as well, whatever of them is there."""
    names = ("routing", "sectional", "leverage")
    studies = tuple(load_study(name, REPOSITORY).at_tier("workstation") for name in names)
    data = gather(replace(own, studies=studies))
    assert data["runs"]["count"] == 0
    assert data["laws"] == data["isoflop"] == data["studies"] == []


def test_runs_under_way_are_rows_before_there_is_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(REPOSITORY / "config")
    project = Project(tier="demo", studies=("sparsity",))
    study = load_study("sparsity")
    sweep = expand_study(study, project)
    run, *_ = sweep.runs
    folder = Results().run(run.run_id)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(run.config.canonical_json())
    so_far = pa.table({"step": [1, 2], "loss": [6.0, 5.0], "seconds": [0.5, 1.0]})
    write_parquet(Results().history_so_far(run.run_id), so_far)
    annotate(Results(), run.run_id, {"baseline": "yes"}, "</script>")
    data = gather(Material(project, (study,), {"sparsity": sweep}, ()))
    columns = {each["name"]: each for each in data["runs"]["columns"]}
    assert data["runs"]["count"] == 1
    assert columns["status"]["levels"] == ["interrupted"]
    assert [curve["loss"] for curve in data["curves"] if curve["loss"]] == [[6, 5]]
    assert columns["tags"]["levels"] == ["baseline=yes"]
    assert columns["note"]["levels"] == ["</script>"]
    assert columns["D"]["values"][0] == run.config.tokens
    assert any("Of the 36 runs" in note and "35 did not start" in note for note in data["notes"])


@given(st.text())
def test_text_comes_back_and_closes_no_element(text):
    letters = packed(to_json({"message": text + "</script>"}))
    assert "<" not in letters
    assert json.loads(gzip.decompress(base64.b64decode(letters)))["message"] == text + "</script>"


@given(st.integers(1, 100_000))
def test_a_thinned_curve_keeps_its_ends_and_few_points(n):
    kept = thinned(n)
    assert len(kept) <= min(n, MAX_POINTS)
    assert kept[0] == 0
    assert kept[-1] == n - 1
    assert (np.diff(kept) > 0).all()


def test_without_plotly_the_page_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match="pip install plotly"):
        render({"title": "A tier"})

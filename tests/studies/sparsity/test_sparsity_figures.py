"""Every figure of the sparsity paper from simulated runs: what it shows, honestly and in full."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from moelaws.figures.draw import draw, make
from moelaws.spec.project import load_study
from moelaws.studies.sparsity.derived.optima import optima
from picture import assert_legible, words
from repository import REPOSITORY
from sparsity_case import DEMO, PAPER

# All but those of scores, which no law gives (test_sparsity_downstream.py).
FIGURES = tuple(
    figure.name
    for figure in load_study("sparsity", REPOSITORY).figures
    if "downstream" not in figure.derived
)
# Few noisy runs whose sizes miss most of the optima, and nothing held out.
POOR = replace(
    DEMO, shift=2.6, noise=0.02, budgets=(1e11, 3e11), seeds=1, sparsities=(0.0, 0.75, 0.9375),
    holdout="S >= 0.99",
)  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_clipped_and_all_points_are_within_the_axes(figure, make_case):
    sheet = make_case(POOR).sheet(figure)
    assert_legible(sheet)
    for panel in sheet.panels:
        shown = sheet.data[sheet.data["panel"] == panel.name]
        for axis, column in ((panel.ax.get_xlim(), "x"), (panel.ax.get_ylim(), "y")):
            values = shown[column].dropna()
            assert values.between(min(axis) * (1 - 1e-9), max(axis) * (1 + 1e-9)).all()


@pytest.mark.slow
def test_the_same_inputs_write_the_same_bytes(make_case, tmp_path):
    case = make_case(DEMO)
    there, here = tmp_path / "there" / "F7.pdf", tmp_path / "here" / "F7.pdf"
    words = ("make", "figures", "sparsity", "F7", "--table", case.table, "--out", there)
    command = [sys.executable, "-m", "moelaws", *map(str, words)]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    draw(case.study, "F7", case.inputs, here)
    for suffix in (".pdf", ".png", ".csv"):
        assert there.with_suffix(suffix).read_bytes() == here.with_suffix(suffix).read_bytes()


def test_type_is_embedded_and_raster_is_fine_enough(make_case, tmp_path):
    case = make_case(DEMO)
    draw(case.study, "F3a", case.inputs, tmp_path / "F3a.pdf")
    pdf = (tmp_path / "F3a.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Type3" not in pdf
    png = (tmp_path / "F3a.png").read_bytes()
    width = int.from_bytes(png[16:20], "big")
    assert width >= 200 * 3.4


def test_every_measured_run_is_on_the_slices(make_case):
    rows = make_case(DEMO).inputs.table
    middle = rows[rows["C"] == 3e11]
    for figure, column in (("F2a", "S"), ("F2b", "N_total"), ("F2c", "N_active")):
        data = make_case(DEMO).sheet(figure).data
        runs = data[data["series"].str.startswith("runs")]
        np.testing.assert_allclose(np.sort(runs["x"]), np.sort(middle[column].astype(float)))
        if figure != "F2a":
            np.testing.assert_allclose(np.sort(runs["y"]), np.sort(middle["L"]))
        np.testing.assert_allclose(runs["high"] - runs["low"], 2 * 0.004)


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["F3a", "F4"])
def test_published_optima_stand_beside_own_ones_at_the_papers_budgets_alone(figure, make_case):
    sheet = make_case(PAPER).sheet(figure)
    published = sheet.data[sheet.data["series"].str.startswith("published")]
    assert published["series"].nunique() == 5
    assert "published (Eq 6)" in words(sheet)
    if figure == "F3a":  # N*(S=.9) at 1e20
        at_1e20 = published[published["series"].str.endswith("C=1e+20")]
        v = -np.log1p(-at_1e20["x"])
        N = np.exp(np.interp(-np.log1p(-0.9), v, np.log(at_1e20["y"])))
        assert pytest.approx(3.96999e9, rel=1e-3) == N
    assert not make_case(DEMO).sheet(figure).data["series"].str.startswith("published").any()


def test_bounds_are_hollow_explained_and_warned_of(make_case):
    table = make_case(POOR).inputs.derived("optima")
    bounds = table[(table["method"] == "surface") & (table["size"] == "total") & ~table["inside"]]
    assert len(bounds)
    sheet = make_case(POOR).sheet("F3a")
    drawn = sheet.data[sheet.data["series"].str.contains("measured range")]
    np.testing.assert_allclose(np.sort(drawn["y"]), np.sort(bounds["N_star"]))
    assert len(sheet.data) == 6  # none is dropped: two budgets, three sparsities
    assert "smallest size measured" in words(sheet)
    warnings = optima.warnings(table)
    assert len(warnings) == int((~table["inside"]).sum())
    assert "at the low end of the measured range" in warnings[0]


@pytest.mark.parametrize("slowed", [0, 3])
def test_time_is_that_of_the_best_runs_whatever_else_the_machine_did(make_case, slowed):
    """Speeds are a power law, and every third run had the machine to itself for a tenth of it."""
    case = make_case(POOR)
    runs = case.inputs.completed
    speed = 1e9 * (runs["C"] / runs["D"]) ** -0.8 * (1 - runs["S"]) ** 0.1
    load = np.where(np.arange(len(runs)) % 3 < (slowed > 0), 0.1, 1.0)
    table = runs.assign(tokens_per_second=speed * load)
    data = make(case.study, "time", replace(case.inputs, frame=table)).data
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
    assert set(data["y"]) == set(best["L"])
    seconds = dict(zip(best["L"], best["D"] / speed[best.index], strict=True))
    timed = data[data["panel"] == "b"]
    expected = [seconds[L] for L in timed["y"]]
    assert timed["x"].to_numpy() == pytest.approx(expected, rel=1e-3)

"""Figures and tables of the allocation paper from simulated runs: what they show, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from allocation_case import ONE, PAPER, POOR, TRUE, Case, Setting, simulate, write_case
from moelaws.analysis.inputs import Inputs
from moelaws.figures.allocation.curve import representative, running_mean
from moelaws.figures.allocation.valleys import FIGURES as VALLEYS
from moelaws.figures.draw import make, tabulate
from moelaws.laws.allocation.ratio import alpha_r, beta_r, ratio
from moelaws.records.layout import Results
from moelaws.training.columns import write_columns

MakeCase = Callable[[Setting], Case]
SETTINGS = {"paper": PAPER, "poor": POOR}
FIGURES = ("F1", "F2a", "F2b", "F2c", "F3a", "F3b", "F4", "F5a", "F5b", "F6")


@pytest.fixture(scope="session")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> MakeCase:
    """A case of a setting, written once a session, with a training curve for each run."""
    cases: dict[Setting, Case] = {}

    def made(setting: Setting) -> Case:
        if setting not in cases:
            case = write_case(tmp_path_factory.mktemp("allocation"), simulate(setting))
            run = representative(case.inputs.derived("runs"))
            _log(case.results.run(str(run["run_id"])), float(run["D"]), float(run["L"]))
            cases[setting] = case
        return cases[setting]

    return made


def _log(folder: Path, D: float, L: float) -> None:
    """A history that falls as a power of the tokens to ``L``."""
    folder.mkdir(parents=True)
    step = np.arange(1, 301)
    loss = L + 0.5 * (300 / step) ** 0.5 - 0.5 + 0.1 * (-1.0) ** step
    columns = {"step": step, "tokens": (step * D / 300).astype(np.int64), "loss": loss}
    about = {name: ("1", name) for name in columns}
    write_columns(folder / "history.parquet", about, columns)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_clipped_and_simulated_losses_say_so(
    figure: str, setting: str, allocation: MakeCase
) -> None:
    case = allocation(SETTINGS[setting])
    sheet = make(case.study, figure, case.inputs)
    canvas = FigureCanvasAgg(sheet.figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3]
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 255).all()  # a clipped word leaves ink at the page's edge
    simulated = SETTINGS[setting].source == "simulated"  # by a law that takes R of Eq 2 for granted
    assert sheet.figure.get_suptitle() == ("SIMULATED DATA, PARTLY ASSUMED" if simulated else "")
    for panel in sheet.panels:
        _ticks_stand_clear(panel.ax, canvas.get_renderer())
    assert len(sheet.data)


def _ticks_stand_clear(ax: Any, renderer: Any) -> None:
    for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
        low, high = sorted(axis.get_view_interval())
        boxes = [
            label.get_window_extent(renderer).extents
            for place, label in zip(
                axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True
            )
            if low <= place <= high and label.get_text()
        ]
        for first, second in pairwise(sorted(boxes, key=lambda box: box[side])):
            assert first[side + 2] <= second[side]


def test_every_loss_is_on_the_valleys_and_the_path_goes_through_the_least(
    allocation: MakeCase,
) -> None:
    case = allocation(PAPER)
    runs, shown = case.inputs.completed, []
    for figure in ("F1", "F6"):
        data = make(case.study, figure, case.inputs).data
        shown.append(data[data["series"].str.startswith("loss, ")])
        path = data[data["series"].str.startswith("r*")]
        least = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
        for panel, S in zip("ab", (0, 3) if figure == "F1" else (1, 2), strict=True):
            own = least[least["S"] == sorted(runs["S"].unique())[S]].sort_values("C")
            np.testing.assert_allclose(path.loc[path["panel"] == panel, "x"], own["r"])
    losses = pd.concat(shown)
    assert len(losses) == len(runs)
    np.testing.assert_allclose(np.sort(losses["y"]), np.sort(runs["L"]))


def test_few_runs_are_said_to_be_few() -> None:
    assert "no further sparsity" in VALLEYS["F6"](Inputs(simulate(ONE))).warnings
    one_ratio = Inputs(simulate(replace(ONE, ratios=(0.5,))))
    assert VALLEYS["F1"](one_ratio).warnings == ["no budget was trained at two ratios or more"]


def test_r_star_and_its_lines_are_those_of_the_tables(allocation: MakeCase) -> None:
    case = allocation(PAPER)
    data = make(case.study, "F2a", case.inputs).data
    table = case.inputs.derived("r_star")
    points = data[data["series"].str.startswith("adjusted")]
    np.testing.assert_allclose(np.sort(points["y"]), np.sort(table["r_adjusted"]))
    published = data[data["series"] == "published, S=0.8235"]
    np.testing.assert_allclose(published["y"], ratio(published["x"], 14 / 17))
    for part in case.inputs.fit("ratio_adjusted").parts:
        line = data[data["series"] == f"fit, S={part.where['S']:.4g}"]
        p = part.estimates()
        np.testing.assert_allclose(line["y"], p["alpha_r"] * line["x"] ** p["beta_r"])


@pytest.mark.parametrize(
    ("figure", "coefficient", "law"), [("F2b", "alpha_r", alpha_r), ("F2c", "beta_r", beta_r)]
)
def test_coefficients_stand_beside_the_published_lines(
    figure: str, coefficient: str, law: Any, allocation: MakeCase
) -> None:
    case = allocation(PAPER)
    data = make(case.study, figure, case.inputs).data
    points = data[data["series"].str.startswith("fit at each S")]
    parts = case.inputs.fit("ratio_adjusted").parts
    estimates = {1 - p.where["S"]: p.params[coefficient].estimate for p in parts}
    assert dict(zip(points["x"], points["y"], strict=True)) == pytest.approx(estimates)
    published = data[data["series"] == "published"]
    np.testing.assert_allclose(published["y"], law(1 - published["x"]))


def test_held_out_runs_are_the_sparsest(allocation: MakeCase) -> None:
    case = allocation(PAPER)
    runs = case.inputs.derived("runs")
    held = make(case.study, "F3b", case.inputs).data
    assert set(held["series"]) == {"runs, S=0.9767"}
    np.testing.assert_allclose(np.sort(held["y"]), np.sort(runs.loc[runs["sparsest"] == 1, "L"]))
    fitted = make(case.study, "F3a", case.inputs).data
    assert len(fitted) == len(runs) - len(held)
    both = make(case.study, "F5a", case.inputs).data
    assert both["series"].str.startswith("held out").sum() == len(held)


def test_eq_2_meets_the_observed_loss_where_it_made_it(allocation: MakeCase) -> None:
    case = allocation(PAPER)
    data = make(case.study, "F4", case.inputs).data
    run = representative(case.inputs.derived("runs"))
    end = data[data["series"] == "Eq 2"].iloc[-1]
    assert end["x"] == run["D"]
    # its noise, and that r* was fitted to these runs
    assert end["y"] == pytest.approx(run["L"], rel=0.02)
    assert data.loc[data["series"] == "validation loss", "y"].item() == run["L"]


def test_a_run_without_a_curve_is_said_to_have_none(allocation: MakeCase, tmp_path: Path) -> None:
    inputs = replace(allocation(PAPER).inputs, results=Results(tmp_path))
    sheet = make(allocation(PAPER).study, "F4", inputs)
    assert sheet.warnings == ["the run has no training curve here"]


def test_a_running_mean_forgets_what_is_older_than_its_window() -> None:
    assert running_mean(np.array([4.0, 2.0, 6.0, 8.0]), 2).tolist() == [4, 3, 4, 7]


def test_the_curve_is_of_the_middle_sparsity_nearest_its_optimum() -> None:
    runs = pd.DataFrame({
        "S": [0.8, 0.9, 0.9, 0.9, 0.95], "C": [2.0, 1.0, 2.0, 2.0, 2.0],
        "r": [0.5, 0.5, 0.4, 0.9, 0.5], "r_star": 0.5, "run_id": list("abcde"),
    })  # fmt: skip
    assert representative(runs)["run_id"] == "c"


def rows(table: str, case: Case, tmp_path: Path) -> pd.DataFrame:
    tabulate(case.study, table, case.inputs, tmp_path / f"{table}.csv")
    for suffix in (".md", ".tex"):
        assert (tmp_path / f"{table}{suffix}").is_file()
    return pd.read_csv(tmp_path / f"{table}.csv")


def test_coefficients_stand_beside_table_1(allocation: MakeCase, tmp_path: Path) -> None:
    frame = rows("T1", allocation(PAPER), tmp_path)
    eq_2 = frame[frame["Law"].str.startswith("Eq 2, R")].set_index("Coefficient")
    assert eq_2["Own runs"].to_dict() == pytest.approx(TRUE)
    assert eq_2["Published"].to_dict() == {
        "a": 15.12, "b": 18.62, "c": 39.55, "d": 0.0499, "tau": 13.7354, "alpha": 0.6288,
        "beta": 0.0453, "lambda": 0.4228, "gamma": 0.0431,
    }  # fmt: skip
    eq_1 = frame[frame["Law"].str.startswith("Eq 1")]
    assert len(eq_1) == 8


def test_hyperparameters_are_the_runs_and_the_papers(allocation: MakeCase, tmp_path: Path) -> None:
    frame = rows("T2", allocation(PAPER), tmp_path)
    own, paper = frame[frame["Runs"] == "own"], frame[frame["Runs"] == "paper"]
    assert own["Budget (FLOPs)"].to_list() == list(PAPER.budgets)
    assert set(own["Batch (sequences)"]) == {64}  # 8192 tokens of 128
    assert paper["Active parameters"].to_list() == ["20M", "30M", "55M", "100M", "200M"]


def test_starts_are_the_papers(allocation: MakeCase, tmp_path: Path) -> None:
    frame = rows("T3", allocation(PAPER), tmp_path)
    assert frame["Number"].prod() == 104_976
    assert "104,976 starts" in (tmp_path / "T3.md").read_text()


def test_goodness_has_every_reading_and_both_baselines(
    allocation: MakeCase, tmp_path: Path
) -> None:
    case = allocation(PAPER)
    frame = rows("T4", case, tmp_path)
    assert len(frame) == sum(fit.table == "runs" for fit in case.study.fits) == 10
    runs = case.inputs.derived("runs")
    assert set(frame["n held out"]) == {int(runs["sparsest"].sum())}
    best = frame.loc[frame["RMSE held out (nats)"].idxmin(), "Law"]
    assert best.startswith("Eq 2")

"""Every figure and table of the generalization paper, from losses of a known law and from few."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from generalization_case import ALPHA_D, ALPHA_N, WIDTH_OF_DATA, Case, demo_table, write_case
from matplotlib.backends.backend_agg import FigureCanvasAgg

from moelaws.analysis.inputs import Inputs
from moelaws.claims.generalization import CLAIMS
from moelaws.figures.draw import make
from moelaws.figures.sheet import Sheet
from moelaws.figures.tabular import Tabular
from moelaws.spec.project import load_study
from moelaws.tables.parquet import write_table
from repository import REPOSITORY

STUDY = load_study("generalization", REPOSITORY)
FIGURES = [figure.id for figure in STUDY.figures]
TABLES = [table.id for table in STUDY.tables]

MakeCase = Callable[[str], Case]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> MakeCase:
    """clear: little noise; noisy: as much as the demo's; each written once."""
    made: dict[str, Case] = {}

    def make_case(name: str) -> Case:
        if name not in made:
            table = demo_table(noise={"clear": 5e-4, "noisy": 0.01}[name])
            made[name] = write_case(tmp_path_factory.mktemp(name), table)
        return made[name]

    return make_case


@pytest.mark.parametrize("setting", ["clear", "noisy"])
@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_clipped_and_every_series_is_recorded(
    figure: str, setting: str, cases: MakeCase
) -> None:
    case = cases(setting)
    sheet = make(case.study, figure, case.inputs)
    canvas = FigureCanvasAgg(sheet.figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3]
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 255).all()  # a clipped word leaves ink at the page's edge
    assert len(sheet.data)
    assert set(sheet.data["panel"]) == {panel.name for panel in sheet.panels}
    for panel in sheet.panels:
        assert panel.ax.get_xlabel()
        assert panel.ax.get_ylabel()


def test_slopes_are_the_laws(cases: MakeCase) -> None:
    slopes = cases("clear").inputs.derived("slopes")
    found = slopes[(slopes["floor"] == "fitted") & (slopes["name"] == "alpha")].set_index("series")
    # The base of the model sweep has M = 8 and k = 2 throughout: routing moves its floor alone.
    assert found.loc["model", "value"] == pytest.approx(ALPHA_N, rel=0.1)
    assert found.loc["data", "value"] == pytest.approx(ALPHA_D, rel=0.1)
    both = slopes[(slopes["floor"] == "fitted") & (slopes["name"] == "kappa")].iloc[0]
    assert both["value_low"] < ALPHA_D * (1 + ALPHA_N) / ALPHA_N < both["value_high"]


def test_f1_shows_a_point_for_each_k_and_m_at_both_budgets(cases: MakeCase) -> None:
    data = make(STUDY, "F1", cases("clear").inputs).data
    assert data.groupby(["panel", "series"]).size().to_dict() == {
        ("a", "k=2"): 5, ("a", "k=4"): 4, ("b", "k=2"): 5, ("b", "k=4"): 4,
    }  # fmt: skip
    least = data[(data["series"] == "k=2") & (data["panel"] == "a")]["x"].min()
    assert least == pytest.approx(2 * 2 * 128 * (1 + np.log(1)), rel=1e-12)


def test_f2_shows_each_probed_models_layers(cases: MakeCase) -> None:
    data = make(STUDY, "F2", cases("clear").inputs).data
    assert sorted(data.groupby("series").size()) == [5, 5, 5, 7]
    assert data["y"].to_numpy() == pytest.approx(WIDTH_OF_DATA, rel=0.1)


@pytest.mark.parametrize("table", TABLES)
def test_tables_have_rows_and_say_what_they_count(table: str, cases: MakeCase) -> None:
    found = tabular(table, cases("clear").inputs)
    assert len(found.frame)
    assert found.notes
    assert found.markdown("caption").count("\n") > len(found.frame)


def test_table_3_has_the_sweeps_architectures(cases: MakeCase) -> None:
    frame = tabular("T3", cases("clear").inputs).frame
    assert len(frame) == 9
    assert frame["N_act"].min() == 1 * (4 * 24**2 + 2 * (2 * 24 * 16 + 16 + 24))


def test_table_5_repeats_the_published_exponents(cases: MakeCase) -> None:
    frame = tabular("T5", cases("clear").inputs).frame
    published = frame[frame["origin"] == "published"].set_index("E")
    assert published.loc[8, "alpha_D pred"] == pytest.approx(0.14354231, rel=1e-6)
    assert list(published.index) == [1, 2, 4, 8, 16, 32]
    assert set(frame[frame["origin"] == "own"]["E"]) == {2, 8, 32}


def test_where_nothing_was_probed_figures_and_claims_say_so(cases: MakeCase, tmp_path) -> None:
    from moelaws.analysis.derive import SOURCE
    from moelaws.analysis.generalization import dimension

    inputs = cases("clear").inputs
    empty = pd.DataFrame(columns=[c.name for c in dimension.COLUMNS]).assign(source="")
    write_table(empty, (*dimension.COLUMNS, SOURCE), tmp_path / "dimension.parquet")
    bare = replace(
        inputs,
        derived_tables={**inputs.derived_tables, "dimension": tmp_path / "dimension.parquet"},
    )
    for figure in ("F2", "F3"):
        assert "no hidden states" in " ".join(make(STUDY, figure, bare).warnings)
    assert "No hidden states" in " ".join(tabular("T1", bare).notes)
    assert "No hidden states" in " ".join(tabular("T2", bare).notes)
    for claim in ("small_dimension", "depth_profile", "dimension_and_exponents"):
        assert "no hidden states" in CLAIMS[claim].judge(bare).measured


def test_simulated_losses_leave_out_what_no_law_gives(tmp_path) -> None:
    """As of simulated tables: the sweep experts alone, and each figure says what it shows."""
    table = demo_table(noise=1e-3)
    experts = table[table["sweep"].str.contains("experts")].assign(source="simulated")
    case = write_case(tmp_path, experts.reset_index(drop=True))
    assert [f.id for f in case.study.figures] == ["F6a", "F6b", "F7a", "F7b"]
    for figure in case.study.figures:
        sheet = make(case.study, figure.id, case.inputs)
        assert "SIMULATED DATA" in words(sheet)
    assert [c.id for c in case.study.claims] == ["kappa_grows"]


def words(sheet: Sheet) -> str:
    return sheet.figure.get_suptitle()


def tabular(table: str, inputs: Inputs) -> Tabular:
    entry = next(t for t in STUDY.tables if t.id == table)
    module = importlib.import_module(f"moelaws.figures.generalization.{entry.code}")
    made: Tabular = module.TABLES[table](inputs.only(entry.fits, entry.derived))
    return made

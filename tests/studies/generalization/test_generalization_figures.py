"""Figures and tables of the generalization paper, from losses of a known law."""

import pytest
from generalization_case import ALPHA_D, ALPHA_N, demo_table, write_case

from moelaws.figures.draw import set_table
from moelaws.spec.project import load_study
from picture import assert_legible
from repository import REPOSITORY

STUDY = load_study("generalization", REPOSITORY)
NOISE = 5e-4


@pytest.fixture(scope="module")
def clear(tmp_path_factory):
    return write_case(tmp_path_factory.mktemp("clear"), demo_table(NOISE))


@pytest.mark.parametrize("figure", [figure.name for figure in STUDY.figures])
def test_nothing_is_clipped_and_every_series_is_recorded(figure, clear):
    sheet = clear.sheet(figure)
    assert_legible(sheet)
    assert set(sheet.data["panel"]) == {panel.name for panel in sheet.panels}
    assert all(panel.ax.get_xlabel() for panel in sheet.panels)
    assert sheet.panels[0].ax.get_ylabel()


def test_slopes_are_the_laws(clear):
    slopes = clear.inputs.derived("slopes")
    alpha = slopes[(slopes["floor"] == "fitted") & (slopes["name"] == "alpha")].set_index("series")
    # The base of the model sweep has M = 8 and k = 2 throughout: routing moves its floor alone.
    assert alpha.loc["model", "value"] == pytest.approx(ALPHA_N, rel=0.1)
    assert alpha.loc["data", "value"] == pytest.approx(ALPHA_D, rel=0.1)
    both = slopes[(slopes["floor"] == "fitted") & (slopes["name"] == "kappa")].iloc[0]
    assert both["value_low"] < ALPHA_D * (1 + ALPHA_N) / ALPHA_N < both["value_high"]


@pytest.mark.slow
def test_corpora_stand_side_by_side(tmp_path):
    corpora = ("stdlib", "environment", "books/*.txt")
    case = write_case(tmp_path, demo_table(NOISE, corpora))
    for figure in ("F2", "F3", "F4", "F5"):
        assert_legible(case.sheet(figure))
    for figure in ("F4", "F5"):
        data = case.sheet(figure).data
        for corpus in corpora:
            own = data[(data["panel"] == "a") & (data["series"] == corpus)]
            assert len(own) == {"F4": 13, "F5": 7}[figure]
    probed = set_table(STUDY, "T1", case.inputs).frame
    assert probed.groupby("corpus").size().to_dict() == dict.fromkeys(corpora, 4)
    theory = set_table(STUDY, "T2", case.inputs).frame
    floored = theory[theory[""] == "measured, floor fitted"].set_index("corpus")
    assert set(floored.index) == set(corpora)
    assert floored["alpha_N"].to_list() == pytest.approx([ALPHA_N] * 3, rel=0.1)
    assert floored["alpha_D"].to_list() == pytest.approx([ALPHA_D] * 3, rel=0.1)
    losses = set_table(STUDY, "T4", case.inputs).frame
    assert losses.groupby("corpus").size().to_dict() == dict.fromkeys(corpora, 4)


def test_table_2_has_the_distance_from_the_identity_with_its_interval(clear):
    """(alpha_D - predicted) / predicted is kappa less 1, and so is its interval."""
    frame = set_table(STUDY, "T2", clear.inputs).frame.set_index("")
    measured = frame.loc["measured, floor fitted"]
    low, high = measured["its low"], measured["its high"]
    kappa = measured["alpha_D"] * (1 + measured["alpha_N"]) / measured["alpha_N"]
    assert measured["Delta_D / alpha_D pred"] == pytest.approx(kappa - 1, rel=1e-9)
    assert low < kappa - 1 < high
    assert frame["alpha_N"].iloc[:3].to_list() == pytest.approx(
        [s / frame["d"].iloc[0] * 2 for s in (0.5, 1, 2)]
    )

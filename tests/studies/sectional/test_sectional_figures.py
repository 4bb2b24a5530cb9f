"""The sectional study: the figures and tables of its cost model, without a single run."""

from functools import cache

import numpy as np
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.figures.draw import make, set_table
from moelaws.spec.project import load_study
from picture import assert_legible, words
from repository import REPOSITORY

STUDY = load_study("sectional", REPOSITORY)


@cache
def sheet_of(figure):
    return make(STUDY, figure, Inputs(frame=None))


def rows_of(table):
    return set_table(STUDY, table, Inputs(frame=None)).frame


@pytest.mark.parametrize("figure", ["cost", "E_opt", "reduction"])
def test_nothing_is_clipped_and_nothing_is_called_data(figure):
    sheet = sheet_of(figure)
    assert_legible(sheet)
    assert "DATA" not in words(sheet)  # no run, simulated or trained, is behind it
    assert "published" in words(sheet)
    assert not sheet.warnings


def test_terms_add_up_to_the_whole_in_the_picture():
    data = sheet_of("cost").data
    terms = data[data["panel"] == "a"].pivot_table(index="x", columns="series", values="y")
    for form in ("as printed", "corrected"):
        shared = ["projections", "attention_experts", "overhead"]
        added = terms[[f"{name}, corrected" for name in shared]].sum(axis=1)
        added = added + terms[f"attention_before, {form}"]
        np.testing.assert_allclose(added, terms[f"S, {form}"])


def test_no_optimum_in_the_picture_reaches_two_experts():
    data = sheet_of("E_opt").data
    assert data["y"].max() <= 2 ** (1 / 3)
    for _, line in data.groupby("series"):
        assert (line.sort_values("x")["y"].diff().dropna() <= 1e-9).all()  # falls with overhead


def test_corrected_factors_lie_below_one_and_the_printed_one_does_not():
    data = sheet_of("reduction").data
    corrected = data["series"].str.startswith("corrected")
    assert (data.loc[corrected, "y"] < 1).all()
    assert data.loc[data["series"] == "Eq 15 as printed", "y"].max() > 1000


def test_optima_of_the_reference_shape():
    table = rows_of("T_E_opt")
    (row,) = table.query("L == 4096 and d0 == 4096 and alpha == 1e8").to_dict("records")
    columns = ["Eq 21 as printed", "least S as printed", "least S corrected"]
    optima = [row[name] for name in columns]
    assert optima == pytest.approx([1.21362, 1.25961, 1.10452], abs=6e-6)
    assert (table[["whole, printed", "whole, corrected"]] == 1).all(axis=None)
    assert (table["S(2)/S(1), corrected"] > 1).all()

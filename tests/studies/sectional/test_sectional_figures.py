"""The sectional study: the figures and tables of its cost model, without a single run."""

from functools import cache

import numpy as np
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.figures.draw import make
from moelaws.spec.project import load_study
from picture import assert_legible, words
from repository import REPOSITORY

STUDY = load_study("sectional", REPOSITORY)


@cache
def sheet_of(figure):
    return make(STUDY, figure, Inputs(frame=None))


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

"""A paper's table as text: what stands in a cell, and that Markdown and LaTeX read it as meant."""

from __future__ import annotations

import pandas as pd
import pytest

from moelaws.figures.tabular import Tabular

FRAME = pd.DataFrame(
    {
        "parameter": ["alpha_1", "A & B", "50 %"],
        "here": [0.123456789, 16612.5, float("nan")],
        "$N_a$ (runs)": [3, 12_000_000, 0],
    }
)
TABLE = Tabular(FRAME, digits=3, notes=["$x_1$ is a share, in %."])


def test_the_csv_keeps_every_digit(tmp_path):
    TABLE.write(tmp_path / "T3.csv", "T3: coefficients", "tab:sparsity-T3")
    back = pd.read_csv(tmp_path / "T3.csv")
    pd.testing.assert_frame_equal(back, FRAME)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["T3.csv", "T3.md", "T3.tex"]


def test_cells_have_significant_digits_and_missing_ones_are_blank():
    assert TABLE.cells() == [
        ["alpha_1", "0.123", "3"],
        ["A & B", "1.66e+04", "1.2e+07"],
        ["50 %", "", "0"],
    ]


def test_markdown_aligns_numbers_and_survives_bars():
    text = Tabular(pd.DataFrame({"a|b": ["x|y"], "n": [1.5]})).markdown("T1: a table")
    assert text.splitlines()[2:] == [r"| a\|b | n |", "|-|-:|", r"| x\|y | 1.5 |"]


def test_latex_escapes_words_and_leaves_mathematics():
    text = TABLE.latex("Errors of 5 % & more", "tab:sparsity-T3")
    assert r"alpha\_1 & 0.123 & 3 \\" in text
    assert r"A \& B & 1.66e+04" in text
    assert r"parameter & here & $N_a$ (runs) \\" in text
    assert r"\caption{Errors of 5 \% \& more}" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"$x_1$ is a share, in \%." in text


@pytest.mark.parametrize("value", [True, "word", None])
def test_what_is_no_number_is_left_as_it_is(value):
    cells = Tabular(pd.DataFrame({"x": pd.Series([value], dtype=object)})).cells()
    assert cells == [["" if value is None else str(value)]]

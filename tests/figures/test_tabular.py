"""What figures and papers' tables are made of: cells as text, panels of losses, bars of errors."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from moelaws.figures.general import columns
from moelaws.figures.series import error_lines
from moelaws.figures.tabular import Tabular
from moelaws.spec.errors import UserError

FRAME = pd.DataFrame(
    {
        "parameter": ["alpha_1", "A & B", "50 %"],
        "here": [0.123456789, 16612.5, float("nan")],
        "$N_a$ (runs)": [3, 12_000_000, 0],
    }
)
TABLE = Tabular(FRAME, digits=3, notes=["$x_1$ is a share, in %."])


def test_columns_of_a_derived_table_are_set_below_headings_or_refused_in_one_line():
    rows = pd.DataFrame({"alpha": [1.0], "beta": [2.0]})
    inputs = SimpleNamespace(derived={"slopes": rows}.get)
    assert list(columns(inputs, "slopes", {"beta": "slope"}).frame) == ["slope"]
    with pytest.raises(UserError, match=r"^columns: the table slopes has no column 'bet'; did you"):
        columns(inputs, "slopes", {"bet": "slope"})


def test_the_csv_keeps_every_digit(tmp_path):
    TABLE.write(tmp_path / "T3.csv", "T3: coefficients", "tab:sparsity-T3")
    back = pd.read_csv(tmp_path / "T3.csv")
    pd.testing.assert_frame_equal(back, FRAME)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["T3.csv", "T3.md", "T3.tex"]


def test_markdown_aligns_numbers_and_survives_bars():
    text = Tabular(pd.DataFrame({"a|b": ["x|y"], "n": [1.5]})).markdown("T1: a table")
    assert text.splitlines()[2:] == [r"| a\|b | n |", "|-|-:|", r"| x\|y | 1.5 |"]


def test_latex_escapes_words_and_leaves_mathematics():
    text = TABLE.latex("Errors of 5 % & more", "tab:sparsity-T3")
    assert r"alpha\_1 & 0.123 & 3 \\" in text
    assert r"A \& B & 1.66e+04 & 1.2e+07 \\" in text
    assert r"50 \% &  & 0 \\" in text  # what is missing is blank
    assert r"parameter & here & $N_a$ (runs) \\" in text
    assert r"\caption{Errors of 5 \% \& more}" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"$x_1$ is a share, in \%." in text


@pytest.mark.parametrize(
    "text",
    [
        *(r"\input{/etc/passwd}", r"$\input{x}$", "$^^5cinput{x}$", r"$\text{\input{x}}$"),
        *("a % b", "$%$"),
    ],
)
def test_latex_reads_no_file_and_leaves_out_nothing(text):
    latex = Tabular(pd.DataFrame({text: [text]}), notes=[text]).latex(text, "tab:x")
    assert not re.search(r"\\input|\^\^|(?<!\\)%(?! \\use)", latex)
    assert latex.count("input") == 4 * text.count("input")


def test_markdown_holds_no_html():
    text = "<img src=x onerror=alert(1)><!-- a --></p> 1 < 2"
    shown = Tabular(pd.DataFrame({text: [text]}), notes=[text]).markdown(text)
    assert not re.search("<[^ ]", shown)
    assert shown.count("< img") == 4
    assert shown.count("1 < 2") == 4


L = np.array([2.0, 2.5, 3.0])


def test_the_mean_explains_nothing_and_two_runs_have_no_r2():
    rows = pd.DataFrame({"predicted": 2.5, "L": L})
    assert error_lines(rows)[-1] == "$R^2$ = 0.0000"
    assert error_lines(rows.assign(predicted=L)[:2]) == ["$n$ = 2", "RMSE = 0 nats"]

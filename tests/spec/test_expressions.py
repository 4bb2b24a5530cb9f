"""Arithmetic over columns: a walk of our own over a parsed text, so nothing of it ever runs."""

import numpy as np
import pytest

from moelaws.spec.errors import UserError
from moelaws.spec.expressions import evaluate, names

COLUMNS = {"k": np.array([1.0, 2.0, 4.0]), "E": np.array([1.0, 8.0, 64.0])}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(E - k) / E", [0, 0.75, 0.9375]),
        ("2048", [2048, 2048, 2048]),
        ("-k ** 2 + 1e1", [9, 6, -6]),
        ("max(E, k, 2) - min(k, 2)", [1, 6, 62]),
        ("ln(exp(E))", [1, 8, 64]),
        ("round(E / 3)", [0, 3, 21]),
        ("k / (E - 1)", [np.inf, 2 / 7, 4 / 63]),
    ],
)
def test_arithmetic_is_that_of_the_page(expression, expected):
    np.testing.assert_allclose(evaluate(expression, COLUMNS, 3), expected, rtol=1e-15)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "E.__class__",
        "E[0]",
        "k if E else 1",
        "ln(E, k)",
        "max(*k)",
        "abs(E)",
        "1_000",
        "~" * 900 + "1",
    ],
)
def test_what_is_no_arithmetic_is_refused(expression):
    with pytest.raises(UserError, match="is not allowed; it may have columns, numbers"):
        evaluate(expression, COLUMNS, 3)


@pytest.mark.parametrize("expression", ["", "E +", "import os", "(" * 900, "-" * 990 + "1"])
def test_what_cannot_be_read_is_refused(expression):
    with pytest.raises(UserError, match=r"is no arithmetic|is not allowed"):
        evaluate(expression, COLUMNS, 3)
    with pytest.raises(UserError, match="has 2,000 characters"):
        evaluate("1" * 2000, COLUMNS, 3)


@pytest.mark.parametrize("number", ["1" * 400, "-1e999", "E * 1e100"])
def test_a_number_that_no_quantity_comes_near_is_refused(number):
    with pytest.raises(UserError, match="a number in it is not below 1e100"):
        evaluate(number, COLUMNS, 3)


def test_a_name_with_other_signs_than_letters_stands_in_quotes():
    columns = {"eval/ppl//x.c4.jsonl": np.array([np.e, 1.0, 2.0]), "k": np.ones(3)}
    value = evaluate("ln(\"eval/ppl//x.c4.jsonl\") + 'k'", columns, 3)
    assert value.tolist() == pytest.approx([2, 1, 1 + np.log(2)])
    assert names("ln('eval/ppl//x.c4.jsonl') + k") == {"eval/ppl//x.c4.jsonl", "k"}
    with pytest.raises(UserError, match="no column 'text' of numbers"):
        evaluate("'text'", columns, 3)


def test_a_power_takes_no_time_and_a_missing_column_is_told():
    assert np.isinf(evaluate("9 ** 9 ** 9 ** 9", COLUMNS, 3)).all()
    with pytest.raises(UserError, match=r"no column 'e' of numbers.*k, E"):
        evaluate("e + 1", COLUMNS, 3)

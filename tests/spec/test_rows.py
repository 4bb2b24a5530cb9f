"""Row expressions: a parser of our own, so nothing in YAML is ever evaluated."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows, select

COLUMNS = {
    "S": np.array([0.0, 0.5, 0.98, np.nan]),
    "C": np.array([1e19, 1e20, 1e21, 1e21]),
    "N": np.array([1e19, 1e21, 1e20, np.nan]),
    "data": np.array(["c4", "S", np.nan, "the pile and c4"], object),
    "text": np.array(["c4", "c4", "c4", "c4"], object),
    "val/loss": np.array([1.0, 2.0, 3.0, np.nan]),
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("S >= 0.98", [False, False, True, False]),
        ("S<0.98 and C > 1e19", [False, True, False, False]),
        ("S != 0.5", [True, False, True, False]),  # a missing value selects nothing
        ("C > 50000000T", [False, True, True, True]),
        ("data == c4", [True, False, False, False]),
        ("data = c4, C = 1e19", [True, False, False, False]),
        ("data != c4", [False, True, False, True]),
        ("data == 'S'", [False, True, False, False]),  # in quotes a column's name is a word
        ('data == "the pile and c4" and C > 1', [False, False, False, True]),
        ("data == text", [True, False, False, False]),
        ("N < C", [False, False, True, False]),
        ("'val/loss' > 1", [False, True, True, False]),
    ],
)
def test_selects(expression, expected):
    assert select(COLUMNS, expression).tolist() == expected


@pytest.mark.parametrize(
    ("expression", "selects"),
    [
        ("S == 0.9688", True),
        ("S > 0.9688", False),
        ("S != 0.9688", False),
        ("S == 0.969", False),
        ("S == 0.96875", True),
        ("S == 0.968751", False),  # more digits than a table shows count, too
        ("N == 38.13K", True),
        ("N < 38.13K", False),
        ("steps == 12346", False),
        ("steps == 12.35K", True),
        ("seed == 0", True),
        ("S > 0.9, N > 1K & steps > 1 and seed < 1 && L > 1", True),
        ("S > 0.9, N > 1M", False),
    ],
)
def test_numbers_are_compared_as_tables_show_them(expression, selects):
    row = {"S": 0.96875, "N": 38_133, "steps": 12345, "seed": 0, "L": 3.698}
    assert select(row, expression) == selects
    arrays = {name: np.array([value, np.nan]) for name, value in row.items()}
    assert select(arrays, expression).tolist() == [selects, False]


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name != "and"
)
QUOTED = st.from_regex(r"\"[^\"']{1,8}\"|'[^\"']{1,8}'", fullmatch=True)


def bare(value):
    return value[1:-1] if isinstance(value, str) and value[0] in "'\"" else value


@given(
    st.lists(
        st.tuples(
            NAMES | QUOTED,
            st.sampled_from([">=", "<=", "==", "!=", ">", "<"]),
            st.floats(allow_nan=False, allow_infinity=False) | NAMES | QUOTED,
        ),
        min_size=1,
        max_size=10,
    )
)
def test_round_trip(clauses):
    text = " and ".join(
        f"{column} {op} {value if isinstance(value, str) else repr(value)}"
        for column, op, value in clauses
    )
    assert [(c.column, c.op, c.value, c.is_word) for c in parse_rows(text)] == [
        (bare(column), op, bare(value), value != bare(value)) for column, op, value in clauses
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "S",
        "S =! 1",
        "S >= 1x",
        "data == 'c4",
        "S > 1_0",
        "S > １",
        "0.5 < S",
        "S > 1 or S < 2",
        "__import__('os')",
    ],
)
def test_what_does_not_parse(bad):
    with pytest.raises(UserError, match="is not COLUMN OP VALUE"):
        parse_rows(bad)


@pytest.mark.parametrize("repeated", ["1", "1.", "1e", " ", "S", "S > 1 and ", "-", "٣"])
@pytest.mark.parametrize("length", [900, 50_000])
def test_a_long_text_is_refused_at_once(repeated, length):
    began = time.process_time()
    with pytest.raises(UserError) as refused:
        parse_rows("S > " + repeated * (length // len(repeated)) + "x!")
    assert time.process_time() - began < 0.5
    assert len(str(refused.value)) < 2200


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("M > 1", "no column 'M'; there are C, N, S"),
        ("S == c4", "S has numbers, and no word such as 'c4'"),
        ("data == 4", "data has words, and no number such as 4.0"),
        ("data > c4", "data has words, which only == and != compare"),
    ],
)
def test_words_and_numbers_are_not_compared(expression, message):
    with pytest.raises(UserError, match=message):
        select(COLUMNS, expression)

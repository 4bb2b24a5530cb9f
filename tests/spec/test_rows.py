"""Row expressions: a parser of our own, so nothing in YAML is ever evaluated."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows, select

COLUMNS = {"S": np.array([0.0, 0.5, 0.98, np.nan]), "C": np.array([1e19, 1e20, 1e21, 1e21])}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("S >= 0.98", [False, False, True, False]),
        ("S<0.98 and C > 1e19", [False, True, False, False]),
        ("S != 0.5", [True, False, True, False]),  # a missing value selects nothing
        ("C==1e21", [False, False, True, True]),
    ],
)
def test_selects(expression, expected):
    assert select(COLUMNS, expression).tolist() == expected


def test_empty_selects_all():
    assert np.broadcast_to(select(COLUMNS, " "), 4).all()


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
                lambda name: name != "and"
            ),
            st.sampled_from([">=", "<=", "==", "!=", ">", "<"]),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_round_trip(clauses):
    text = " and ".join(f"{column} {op} {number!r}" for column, op, number in clauses)
    assert [(c.column, c.op, c.number) for c in parse_rows(text)] == clauses


@pytest.mark.parametrize(
    "bad", ["S", "S >", "S = 1", "S >= x", "0.5 < S", "S > 1 or S < 2", "__import__('os')", "and"]
)
def test_what_does_not_parse(bad):
    with pytest.raises(UserError, match="is not COLUMN OP NUMBER"):
        parse_rows(bad)


@pytest.mark.parametrize("repeated", ["1", "1.", "1e", " ", "S", "S > 1 and ", "-", "٣"])
@pytest.mark.parametrize("length", [900, 50_000])
def test_a_long_text_is_refused_at_once(repeated, length):
    began = time.process_time()
    with pytest.raises(UserError) as refused:
        parse_rows("S > " + repeated * (length // len(repeated)) + "x")
    assert time.process_time() - began < 0.5
    assert len(str(refused.value)) < 2200


def test_unknown_column():
    with pytest.raises(UserError, match="no column 'N'; there are C, S"):
        select(COLUMNS, "N > 1")

"""Learning rate and batch by the leverage paper's laws and by table."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.grids.hyperparameters import batch_size, learning_rate
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Derivations, LeverageLaw, TableOf

LAW = LeverageLaw(rule="leverage")
# Table 8, leverage: blocks, width, learning rate, sequences of 4096, and the largest budget.
TABLE_8 = [
    (8, 384, 1.52e-3, 98, 2e18),
    (8, 512, 1.31e-3, 147, 6e18),
    (10, 640, 1.11e-3, 228, 2e19),
    (14, 768, 9.5e-4, 342, 6e19),
    (16, 1024, 8.1e-4, 531, 2e20),
    (22, 1280, 7.0e-4, 795, 6e20),
]


def rule(name, **data):
    return getattr(parse(Derivations, {name: data}, "g.yaml"), name)


def test_eq_5_at_1e20():
    point = {"C": 1e20, "context": 4096}
    assert learning_rate(point, LAW) == pytest.approx(1.0128812e-3, rel=1e-5)
    assert batch_size(point, LAW) == 329  # of 328.851 sequences
    assert batch_size({**point, "context": 1}, LAW) == pytest.approx(1_346_974.8, rel=1e-5)


def test_table_8_is_not_eq_5():
    """The paper's own grid has batches a quarter larger than its law and lower learning rates."""
    rates = [0.8251, 0.8412, 0.8568, 0.8674, 0.8891, 0.9089]
    batches = [1.2397, 1.2461, 1.2463, 1.2528, 1.2543, 1.2584]
    for (*_, lr, batch, C), rate, size in zip(TABLE_8, rates, batches, strict=True):
        point = {"C": C, "context": 1}
        assert lr / learning_rate(point, LAW) == pytest.approx(rate, abs=1e-4)
        assert batch * 4096 / batch_size(point, LAW) == pytest.approx(size, abs=1e-4)


@pytest.mark.parametrize(("layers", "width", "lr", "batch", "C"), TABLE_8)
def test_by_table(layers, width, lr, batch, C):
    by = ["n_layers", "d_model"]
    rates = rule("lr", rule="table", by=by, rows=[row[:3] for row in TABLE_8])
    sizes = rule("batch", rule="table", by=["C"], rows=[[str(r[4]), r[3]] for r in TABLE_8])
    point = {"n_layers": layers, "d_model": width, "C": C}
    assert learning_rate(point, rates) == lr
    assert batch_size(point, sizes) == batch
    assert batch_size({**point, "balance_group": 8}, sizes) == 8 * ((batch + 4) // 8)


def test_a_missing_row_names_the_rows_there_are():
    rates = TableOf(rule="table", by=("n_layers", "d_model"), rows=((8, 384, 1e-3), (8, 512, 2e-3)))
    with pytest.raises(UserError) as caught:
        learning_rate({"n_layers": 10, "d_model": 512}, rates)
    assert str(caught.value) == (
        "the table of lr has no row for (n_layers 10, d_model 512); it has (n_layers 8, d_model "
        "384), (n_layers 8, d_model 512); add a row under derive.lr, or set lr"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rule": "table", "by": ["d_model"], "rows": [[1, 2, 3]]}, "[1, 2, 3] must hold d_model"),
        ({"rule": "table", "by": ["d_model"], "rows": [[8, 1], [8, 2]]}, "two rows are for [8]"),
        ({"rule": "table", "by": ["seed"], "rows": [[1, 2]]}, "'seed' is no positive setting"),
        (
            {"rule": "table", "by": ["d_model"], "rows": []},
            "lr.rows is []; it must be a list of 1 or more",
        ),
        (
            {"rule": "table", "by": ["d_model"], "rows": [[8, "big"]]},
            "lr.rows #1 #2 is 'big'; it must be a number",
        ),
        ({"rule": "leverage", "at": 1}, "unknown key lr.at; allowed here: rule"),
        ({"rule": "magic"}, "lr.rule is 'magic'; it must be power, leverage, table or chosen"),
    ],
)
def test_mistakes_in_a_rule(data, message):
    with pytest.raises(UserError) as caught:
        parse(Derivations, {"lr": data}, "g.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("point", "message"),
    [({}, "C is missing; the derivation 'leverage (batch)'"), ({"C": 1e20}, "context is missing")],
)
def test_what_a_law_needs(point, message):
    with pytest.raises(UserError, match="missing") as caught:
        batch_size(point, LAW)
    assert message in str(caught.value)


@given(
    C=st.floats(1e6, 1e26),
    context=st.integers(1, 2**20),
    group=st.integers(1, 512),
)
def test_a_batch_is_the_nearest_positive_multiple_of_the_balance_group(C, context, group):
    batch = batch_size({"C": C, "context": context, "balance_group": group}, LAW)
    sequences = math.exp(math.log(0.0694) + 0.3644 * math.log(C)) / context
    assert batch % group == 0
    assert batch >= group
    if batch > group:  # the smallest there is may be farther
        assert abs(batch - sequences) <= group / 2 + 1e-5 * sequences
    else:
        assert sequences <= 1.5 * group * (1 + 1e-5)

"""The allocation paper's Eq 2 against its formula, written out here, and its derivatives."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.caveats import require_identifiable
from moelaws.spec.errors import UserError
from moelaws.spec.rows import select
from moelaws.studies.allocation.laws import ratio

LAW = laws.get("allocation.loss")
FORMS = (LAW, *laws.variants("allocation.loss").values())
TABLE_1 = LAW.published


def design(n=120, seed=0):
    """Rows as of the paper's sweep: four sparsities, r in [0.2, 1.5]."""
    rng = np.random.default_rng(seed)
    columns = {
        "N": np.exp(rng.uniform(np.log(1e8), np.log(5e9), n)),
        "D": np.exp(rng.uniform(np.log(1e9), np.log(1e11), n)),
        "S": 1 - 3 / rng.choice([17, 33, 65, 129], n),
        "r": rng.uniform(0.2, 1.5, n),
    }
    compute = 6 * columns["N"] * (1 - columns["S"]) * columns["D"]
    return columns | {"r_star": ratio.ratio(compute, columns["S"])}


def test_table_1_at_one_point():
    point = {"N": 5.5e8, "D": 1e10, "S": 62 / 65}
    literal = laws.get("allocation.loss:literal").predict(TABLE_1, point | {"r": 1.0})
    assert literal == pytest.approx(20.34069066762251, rel=1e-7)
    r_star = ratio.ratio(1e20, 62 / 65)
    abslog = LAW.predict(TABLE_1, point | {"r": 1.5, "r_star": r_star})
    assert abslog == pytest.approx(20.338253901945443, rel=1e-7)


def test_a_misallocation_of_20_percent_costs_what_table_1_says():
    best = float(ratio.ratio(2e20, 62 / 65))
    point = {"N": 2e8, "D": 1e10, "S": 62 / 65, "r_star": best}
    cost = []
    for ref in ("allocation.loss:literal", "allocation.loss:absdiff", "allocation.loss"):
        at_best, off = laws.get(ref).predict(TABLE_1, point | {"r": [best, 1.2 * best]})
        cost.append(off - at_best)
    expected = [0.008510264765774878, 0.00474260164065754, 0.004378872283758994]
    assert cost == pytest.approx(expected, rel=1e-4)


def test_at_one_size_the_loss_rises_with_r_read_literally_and_abslog_is_least_at_r_star():
    r = np.linspace(0.2, 1.5, 131)
    literal = laws.get("allocation.loss:literal")
    for N in (3e7, 5.5e8, 5e9):
        L = literal.predict(TABLE_1, {"N": N, "D": 1e10, "S": 62 / 65, "r": r})
        assert (np.diff(L) > 0).all()
        deviation = {"N": N, "D": 1e10, "S": 62 / 65, "r": r, "r_star": 0.9}
        penalty = LAW.predict(TABLE_1 | {"d": 1e-6}, deviation)
        assert r[penalty.argmin()] == pytest.approx(0.9)


def test_table_1_gives_losses_of_about_20_nats():
    columns = design()
    L = LAW.predict(TABLE_1, columns)
    assert L.min() > 19
    assert L.max() < 22


def test_the_printed_hold_out_is_the_sparsest_sweep():
    sweeps = {"S": 1 - 3 / np.array([17, 33, 65, 129])}
    assert select(sweeps, LAW.protocol.holdout).tolist() == [False, False, False, True]


def test_published_values_are_identified_by_the_design():
    columns = design()
    model = LAW.model(LAW.columns(columns))
    _, state = model.evaluate(LAW.vector(TABLE_1)[None])
    J = model.jacobian(state)[0]
    J /= np.linalg.norm(J, axis=1, keepdims=True)
    assert np.linalg.matrix_rank(J) == 9
    require_identifiable(LAW, columns)


@pytest.mark.parametrize(
    ("constant", "lost"),
    [
        ({"N": 1e9}, {"alpha", "a", "lambda", "c"}),
        ({"D": 1e10}, {"beta", "b"}),
        ({"S": 0.9}, set()),  # R varies: its slope tells (1-S)^gamma from c
        ({"S": 0.0}, {"gamma"}),
        ({"S": 0.9, "r": 1.0, "r_star": 0.8}, {"d", "tau", "gamma", "c"}),
        ({"r": 1.0}, {"d", "tau"}),
        ({"r": 1.0, "r_star": 1.0}, {"d", "tau", "gamma"}),
    ],
)
def test_what_constant_variables_leave_open_is_named(constant, lost):
    columns = design() | {name: np.full(120, value) for name, value in constant.items()}
    try:
        require_identifiable(LAW, columns)
        named = set()
    except UserError as error:
        named = set(
            re.findall(r"[\w]+", str(error).partition("determine ")[2].partition(" of ")[0])
        )
    assert bool(named) == bool(lost)
    assert named >= lost


@given(
    st.lists(st.floats(0, 1), min_size=9, max_size=9),
    st.floats(0, 0.999999),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e3),
)
def test_finite_everywhere_within_the_bounds(where, S, r, r_star):
    low, high = LAW.bounds.T
    theta = low + np.array(where) * (high - low)
    columns = {"N": 1e9, "D": 1e10, "S": S, "r": r, "r_star": r_star}
    for form in FORMS:
        model = form.model({k: v.reshape(1) for k, v in form.columns(columns).items()})
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            value, state = model.evaluate(theta[None])
            jacobian = model.jacobian(state)
            curvature = model.curvature(state, np.ones((1, 1)))
        assert np.isfinite(value).all()
        assert np.isfinite(jacobian).all()
        assert np.isfinite(curvature).all()

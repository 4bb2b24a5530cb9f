"""The allocation paper's laws against numbers worked out apart from this code."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocation_case import alpha_r, beta_r
from moelaws import laws
from moelaws.fitting.caveats import require_identifiable
from moelaws.spec.errors import UserError
from moelaws.spec.rows import select
from moelaws.studies.allocation.laws import ratio

RATIO = laws.get("allocation.ratio")
PAPER = RATIO.published
E17, E33, E65, E129 = (1 - 3 / E for E in (17, 33, 65, 129))  # one shared of three active


@pytest.mark.parametrize(
    ("C", "E", "expected"),
    [
        (1e20, 17, 1.2225248883546316),
        (1e20, 33, 1.0185791540197204),
        (1e20, 65, 0.9664551336205626),
        (1e20, 129, 1.0328051686636301),
        (1e21, 17, 1.7946807442963462),
        (1e21, 129, 1.3272638706815338),
    ],
)
def test_optimal_ratio(C, E, expected):
    S = (E - 3) / E
    assert RATIO.predict(PAPER, {"C": C, "S": S}) == pytest.approx(expected, rel=1e-5)
    assert ratio.ratio(C, S) == pytest.approx(expected, rel=1e-5)
    assert alpha_r(S) * C ** beta_r(S) == pytest.approx(expected, rel=1e-5)


def test_ratio_of_the_densest_and_the_sparsest():
    # "Over 40 %" is true beyond the largest budget alone, and below 5.4e18 the order reverses.
    quotient = ratio.ratio(1e21, E17) / ratio.ratio(1e21, E129)
    assert quotient == pytest.approx(1.35216574785148, rel=1e-5)
    beyond = 1.8249680798045226e21
    assert ratio.ratio(beyond, E17) / ratio.ratio(beyond, E129) == pytest.approx(1.4, rel=1e-4)
    same = 5.403540202639673e18
    assert ratio.ratio(same, E17) == pytest.approx(ratio.ratio(same, E129), rel=1e-4)
    assert ratio.ratio(0.9 * same, E17) < ratio.ratio(0.9 * same, E129)


def test_compute_at_which_attention_and_experts_are_equal():
    budgets = np.array([2.996753541671535e19, 1.311561566848358e20, 7.435644762537982e19, 7.83e19])
    equal = ratio.ratio(budgets, [E17, E65, E129, 0.9])
    assert equal == pytest.approx(1, rel=1e-4)
    # "r* > 1 for S < 90 %" and "r* < 1 for S > 95 %" hold together at no budget (E0.7).
    assert budgets[3] > budgets[2]


def test_ratio_is_not_monotone_in_sparsity():
    S = np.linspace(0, 0.999, 100_001)
    assert S[ratio.ratio(1e20, S).argmin()] == pytest.approx(0.9513811993695364, abs=1e-5)


EXACT = laws.get("allocation.elasticity")
PRINTED = laws.get("allocation.elasticity:printed")
CASE = {"C": 1e6, "a": 0.3, "e": 0.2, "alpha_A": 1.3, "alpha_E": 2.0}

points = st.fixed_dictionaries(
    {
        "C": st.floats(1e-3, 1e24),
        "a": st.floats(0.01, 2),
        "e": st.floats(0.01, 2),
        "alpha_A": st.floats(1e-3, 1e3),
        "alpha_E": st.floats(1e-3, 1e3),
    }
)


def eq_3(ln_r, C, a, e, alpha_A, alpha_E):
    r = np.exp(ln_r)
    return alpha_A * (C / (1 + r)) ** -a + alpha_E * (C * r / (1 + r)) ** -e


def test_exact_optimum_and_its_slope():
    values = EXACT.evaluate({}, CASE)
    assert values["r"] == pytest.approx(2.8843812650377445, rel=1e-6)
    assert values["slope"] == pytest.approx(0.07847717403221514, rel=1e-6)


def test_printed_form_reverses_the_sign():
    printed = PRINTED.evaluate({}, CASE)
    assert printed["r"] == pytest.approx(0.404884, rel=1e-5)
    assert printed["slope"] == pytest.approx(-0.0666667, rel=1e-5)
    assert EXACT.evaluate({}, CASE)["slope"] > 0


def test_exact_optimum_is_the_least_loss_of_a_fine_grid():
    ln_r = np.linspace(-8, 8, 1_600_001)
    for change in ({}, {"a": 0.1}, {"C": 1e20}, {"alpha_E": 0.1, "a": 0.9}, {"a": 0.2}):
        case = CASE | change
        best = ln_r[eq_3(ln_r, **case).argmin()]
        assert math.log(EXACT.evaluate({}, case)["r"]) == pytest.approx(best, abs=2e-5)


@given(points)
def test_exact_optimum_fulfils_the_condition_and_its_slope_the_difference(point):
    r = float(EXACT.evaluate({}, point)["r"])
    a, e = point["a"], point["e"]
    left = (e + 1) * math.log(r) + (a - e) * math.log1p(r)
    right = math.log(point["alpha_E"] * e / (point["alpha_A"] * a)) + (a - e) * math.log(point["C"])
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)

    C = point["C"] * np.exp([-1e-3, 1e-3])
    values = EXACT.evaluate({}, point | {"C": C})
    slope = np.diff(np.log(values["r"]))[0] / 2e-3
    assert slope == pytest.approx(float(EXACT.evaluate({}, point)["slope"]), rel=1e-4, abs=1e-9)


@given(points)
def test_equal_elasticities_give_a_constant_ratio(point):
    case = point | {"e": point["a"]}
    pull = case["alpha_E"] / case["alpha_A"]
    values = EXACT.evaluate({}, case)
    assert values["r"] == pytest.approx(pull ** (1 / (1 + case["a"])), rel=1e-9)
    assert values["slope"] == 0
    printed = PRINTED.evaluate({}, case)["r"]
    assert printed == pytest.approx(pull ** (1 / (1 + 2 * case["a"])), rel=1e-9)


@given(points)
def test_steeper_attention_term_moves_compute_to_experts(point):
    # What decays faster matters less as compute grows: the sign is that of a - e.
    slope = EXACT.evaluate({}, point)["slope"]
    assert np.sign(slope) == np.sign(point["a"] - point["e"])
    assert np.sign(PRINTED.evaluate({}, point)["slope"]) == -np.sign(slope)


def test_the_text_says_what_is_solved():
    names = CASE | {"r": float(EXACT.evaluate({}, CASE)["r"])}
    left, right = EXACT.equation.replace("^", "**").split("=")
    assert eval(left, {}, names) == pytest.approx(eval(right, {}, names), rel=1e-12)


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

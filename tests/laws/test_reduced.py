"""What is left of a law where a variable is constant: all that rows can tell, and no more."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws import laws
from moelaws.laws.reduced import reduced

# Law, constant variables, and the parameters that remain.
CASES = [
    ("chinchilla", "D", "A E alpha"),
    ("chinchilla", "N", "B E beta"),
    ("wang.loss", "D", "a tau alpha gamma"),
    ("sparsity.loss", "D", "a c d e alpha lambda delta gamma"),
    ("granularity.loss", "D G", "a alpha c"),
    ("joint.loss", "D", "a alpha delta gamma b omega E_start E_max c"),
    ("leverage.loss", "G", "alpha beta b a d A_start A_max"),
    ("routing.loss", "E", "a alpha e"),
    ("clark.routing", "E", "a d"),
]


def columns(law, constant, rng, n=60):
    """Rows in which all but ``constant`` vary."""
    ranges = {"N": (1e6, 1e9), "N_active": (1e6, 1e9), "D": (1e8, 1e11), "C": (1e16, 1e20)}
    values = {}
    for variable in law.variables:
        name = variable.name
        if name == "S":
            values[name] = rng.uniform(0, 0.97, n)
        elif name in ("E", "G"):
            values[name] = 2.0 ** rng.integers(0, 8, n)
        else:
            values[name] = np.exp(rng.uniform(*np.log(ranges[name]), n))
        if name in constant:
            values[name][:] = values[name][0]
    return values


def rank(law, columns, rng):
    """The rank of the Jacobian at parameters between the law's starts."""
    model = law.model(columns)
    low, high = (
        [end(law.protocol.grid.get(name, (0.5,))) for name in law.names] for end in (min, max)
    )
    theta = np.array(low) + (np.array(high) - low) * rng.uniform(0.3, 0.7, len(low))
    J = model.jacobian(model.evaluate(theta[None])[1])[0]
    J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
    return np.linalg.matrix_rank(J, tol=1e-7)


@pytest.mark.parametrize(("ref", "constant", "left"), CASES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_nothing_is_lost_and_nothing_is_left_open(ref, constant, left, seed):
    """As many directions of the whole law move predictions as the reduced one has parameters."""
    rng = np.random.default_rng(seed)
    law = laws.fittable(ref)
    values = columns(law, constant.split(), rng)
    form = reduced(law, constant.split())
    assert set(form.names) == set(left.split())
    assert rank(law, values, rng) <= len(form.names) < len(law.names)
    assert rank(form, values, rng) == len(form.names)


@pytest.mark.parametrize(("ref", "constant"), [("chinchilla", "D"), ("granularity.loss", "D")])
def test_the_constant_term_joins_the_irreducible_loss(ref, constant):
    law = laws.fittable(ref)
    form = reduced(law, [constant])
    values = columns(law, [constant], np.random.default_rng(0))
    whole = law.published
    (lost,) = (t for t in law.terms if t.coefficient.name in set(law.names) - set(form.names))
    (power,) = lost.powers
    data = whole[lost.coefficient.name] / values[constant][0] ** whole[power.exponent.name]
    floor = law.terms[-1].coefficient.name
    own = {name: whole[name] for name in form.names} | {floor: whole[floor] + data}
    np.testing.assert_allclose(form.predict(own, values), law.predict(whole, values), rtol=1e-12)


def test_a_reduced_law_has_the_second_derivatives_of_the_whole():
    rng = np.random.default_rng(0)
    law = laws.fittable("leverage.loss")
    values, form = columns(law, ["G"], rng), reduced(law, ["G"])
    theta, psi = np.tile(form.vector(law.published), (2, 1)), rng.standard_normal((2, 60))
    by_itself, by_differences = (
        own.curvature(own.evaluate(theta)[1], psi)
        for own in (each.model(values) for each in (form, replace(form, second=None)))
    )
    assert by_itself == pytest.approx(by_differences, rel=1e-5, abs=1e-6)

"""What every law and every form of it declares, and that asking for laws stays light."""

import subprocess
import sys

import numpy as np
import pytest

from equation_text import said
from moelaws import laws
from moelaws.laws.base import FRACTION, SPARSITY, FittableLaw
from moelaws.laws.forms import LinearLaw

# Of the isoFLOP surface's 125 forms a few stand for all.
SURFACES = ("000", "222", "314", "444")
REFS = [
    ref
    for law_id in laws.ids()
    for ref in (law_id, *(f"{law_id}:{name}" for name in laws.variants(law_id)))
    if not ref.startswith("sparsity.isoflop:") or ref.endswith(SURFACES)
]
FITTED = [ref for ref in REFS if isinstance(laws.get(ref), FittableLaw)]
# Relations that are solved for their result: their texts are no assignments.
IMPLICIT = {"allocation.elasticity", "generalization.active_experts"}

# Where a quantity of that unit lies in practice; pure numbers else.
_USUAL = {
    "parameters": (1e7, 1e11),
    "tokens": (1e9, 1e12),
    "samples": (1e5, 1e9),
    "FLOP": (1e18, 1e22),
    "experts": (8.0, 256.0),
    "layers": (2.0, 64.0),
}


def draw(variable, n, rng):
    """``n`` values of a variable within its domain."""
    if variable.domain in (SPARSITY, FRACTION):
        return rng.uniform(0.01, 0.98, n)
    if variable.default == 0:  # an indicator
        return rng.integers(0, 2, n).astype(float)
    low, high = _USUAL.get(variable.unit, (0.05, 20.0))
    if variable.name == "k":  # active ones, of at least 8
        low, high = 1.0, 4.0
    values = np.exp(rng.uniform(np.log(low), np.log(high), 50 * n))
    return values[variable.domain.holds(values)][:n]


def columns_of(law, n=12, seed=0):
    rng = np.random.default_rng(seed)
    return law.columns({v.name: draw(v, n, rng) for v in law.variables})


def vectors_of(law, seed=0):
    """Working-scale vectors within the bounds: the published one and some from the start grid."""
    rng = np.random.default_rng(seed)
    low, high = law.bounds.T
    grid = law.protocol.grid
    drawn = [
        [rng.choice(grid[name]) if name in grid else rng.normal() for name in law.names]
        for _ in range(3)
    ]
    vectors = [np.clip(np.array(v) + 0.01, low, high) for v in drawn]
    if law.published is not None:
        vectors.append(law.vector(law.published))
    return np.array(vectors)


@pytest.mark.parametrize("ref", REFS)
def test_declaration_is_complete(ref):
    law = laws.get(ref)
    assert law.ref == ref
    assert law.id == ref.partition(":")[0]
    assert all((law.title, law.source, law.equation, law.latex))
    for declared in (law.variables, law.results):
        assert declared
        assert len({v.name for v in declared}) == len(declared)
        assert all(v.unit and v.description for v in declared)
    assert all(text.strip() for text in law.errata)


@pytest.mark.parametrize("ref", FITTED)
def test_what_is_fitted_can_be(ref):
    law = laws.get(ref)
    assert law.protocol.source
    assert len(set(law.names)) == len(law.names)
    assert law.response.name not in {v.name for v in law.variables}
    low, high = law.bounds.T
    assert (low < high).all()
    if law.protocol.grid or not isinstance(law, LinearLaw):
        assert set(law.protocol.grid) == set(law.names)
        for name, least, largest in zip(law.names, low, high, strict=True):
            assert all(least <= start <= largest for start in law.protocol.grid[name]), name
    if law.published is not None:
        assert set(law.published) == set(law.names)
        theta = law.vector(law.published)
        assert ((low <= theta) & (theta <= high)).all()
        assert law.natural(theta) == pytest.approx([law.published[name] for name in law.names])


@pytest.mark.parametrize("ref", [ref for ref in REFS if ref not in IMPLICIT])
def test_a_law_predicts_what_its_equation_text_says(ref):
    law = laws.get(ref)
    columns = columns_of(law)
    params = law.published or {}
    if isinstance(law, FittableLaw):
        params = dict(zip(law.names, law.natural(vectors_of(law)[-1]), strict=True))
    results, text = law.evaluate(params, columns), said(law, columns, params)
    assert set(results) & set(text)
    for name in set(results) & set(text):
        assert results[name] == pytest.approx(text[name], rel=1e-10), name


@pytest.mark.parametrize("ref", FITTED)
def test_derivatives_are_those_of_the_prediction(ref):
    law = laws.get(ref)
    model, theta = law.model(columns_of(law)), vectors_of(law)
    value, state = model.evaluate(theta)
    jacobian = model.jacobian(state)
    psi = np.random.default_rng(1).normal(size=value.shape)
    curvature = model.curvature(state, psi)
    if model.log_of_sum:
        curvature -= np.einsum("bpn,bqn,bn->bpq", jacobian, jacobian, psi)
    steep = np.abs(jacobian).max()
    h = 1.0 if isinstance(law, LinearLaw) else 1e-6
    for p in range(len(law.names)):
        step = np.zeros_like(theta)
        step[:, p] = h
        (up, above), (down, below) = model.evaluate(theta + step), model.evaluate(theta - step)
        slope, noise = (up - down) / (2 * h), 1e-14 * np.abs(value).max() / h
        assert slope == pytest.approx(jacobian[:, p], rel=1e-5, abs=max(noise, 1e-9))
        turn = np.einsum("bpn,bn->bp", model.jacobian(above) - model.jacobian(below), psi) / (2 * h)
        assert turn == pytest.approx(curvature[:, p], rel=1e-4, abs=1e-7 * steep + 1e-9)


@pytest.mark.parametrize("ref", FITTED)
def test_a_model_over_some_rows_is_that_of_all(ref):
    law = laws.get(ref)
    model, theta, index = law.model(columns_of(law)), vectors_of(law), np.array([7, 2, 2, 11])
    value, state = model.evaluate(theta)
    some, some_state = model.rows(index).evaluate(theta)
    assert some == pytest.approx(value[:, index], rel=1e-12)
    assert model.rows(index).jacobian(some_state) == pytest.approx(
        model.jacobian(state)[:, :, index], rel=1e-12
    )
    psi_of_some = np.ones((len(theta), 4))
    psi_of_all = np.tile(np.bincount(index, minlength=12).astype(float), (len(theta), 1))
    curvature = model.curvature(state, psi_of_all)
    assert model.rows(index).curvature(some_state, psi_of_some) == pytest.approx(
        curvature, abs=1e-9 * np.abs(curvature).max()
    )


def test_a_prediction_imports_neither_pandas_nor_scipy_nor_torch():
    arguments = ["eval", "allocation.loss", "N=1e9", "E=65", "k=3", "C=1e20", "r=1"]
    code = (
        "import sys; from moelaws.cli import cli; cli(sys.argv[1:], standalone_mode=False);"
        "heavy = {'pandas', 'scipy', 'torch', 'pyarrow'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_vanished_term_is_nothing_and_costs_no_nan():
    law = laws.get("chinchilla")
    theta = law.vector(law.published | {"A": 1e-3, "alpha": 4.0})
    model = law.model({"N": np.full(3, 1e30), "D": np.array([1e9, 1e10, 1e11])})
    ln_L, (weight,) = model.evaluate(theta[None])
    without = law.published["B"] / np.array([1e9, 1e10, 1e11]) ** law.published["beta"]
    assert np.exp(ln_L[0]) == pytest.approx(without + law.published["E"], rel=1e-12)
    assert (weight[0, 0] < 1e-100).all()
    assert np.isfinite(model.curvature((weight,), np.ones((1, 3)))).all()

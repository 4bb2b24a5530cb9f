"""Muennighoff et al.'s law of repeated data: its limits, and the fit that the paper reports."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.laws.repeated_data import LAW
from moelaws.spec.fit import Fit
from public_runs import public

P = LAW.published
DENSE = laws.get("chinchilla")
AS_DENSE = {name: P[name] for name in ("A", "B", "E", "alpha")} | {"beta": P["alpha"]}
TOKENS = st.floats(7, 12).map(lambda x: 10.0**x)
TIMES = st.floats(1.0, 1e3)


@given(TOKENS, TIMES)
def test_without_repetition_it_is_chinchilla(U, less):
    """As long as the model is no larger than these tokens train best: .051 parameters a token."""
    assert (P["A"] / P["B"]) ** (1 / P["alpha"]) == pytest.approx(0.051, abs=5e-4)
    at = {"N": 0.05 * U / less, "D": U / less}
    assert LAW.predict(P, at | {"U": U}) == pytest.approx(float(DENSE.predict(AS_DENSE, at)))


@given(TOKENS, TIMES)
def test_a_repeated_token_is_worth_less_than_a_new_one_and_more_than_none(U, epochs):
    at = {"N": 0.05 * U, "D": U * epochs}
    once, repeated = LAW.predict(P, {"N": 0.05 * U, "D": U, "U": U}), LAW.predict(P, at | {"U": U})
    assert DENSE.predict(AS_DENSE, at) - 1e-12 <= repeated <= once + 1e-12
    forever = DENSE.predict(AS_DENSE, at | {"D": U * (1 + P["R_D"])})
    assert repeated >= forever - 1e-12


@pytest.mark.parametrize(("epochs", "value"), [(1, 1), (4, 3.726), (16, 10.582), (40, 15.167)])
def test_the_worth_of_epochs(epochs, value):
    """App A: D' over U, by which four epochs keep 93 % of their tokens' value and 40 keep 38 %."""
    U, N = 1e11, 1e9
    worth = DENSE.predict(AS_DENSE, {"N": N, "D": value * U})
    assert LAW.predict(P, {"N": N, "D": epochs * U, "U": U}) == pytest.approx(worth, abs=1e-5)


def test_four_epochs_of_the_largest_model_cost_little():
    """8.7e9 parameters on 178e9 tokens, and on 44e9 four times: .7 % more loss; measured .5 %."""
    once, four = LAW.predict(P, {"N": 8.7e9, "D": 178e9, "U": [178e9, 44e9]})
    assert (once, four) == pytest.approx((2.1922, 2.2073), abs=1e-4)


def test_published_values_have_the_papers_r_squared_and_a_refit_a_better_one():
    """182 runs; the paper states .7722. Its A, B, E and alpha lie 7 % below these losses."""
    files = ("data_constrained_train.parquet", "data_constrained_test.parquet")
    table = pd.concat([pd.read_parquet(public(name)) for name in files])
    assert len(table) == 182
    mapping = {"N": "params", "D": "tokens", "U": "unique_tokens", "L": "loss"}
    columns, loss = {name: table[mapping[name]] for name in "NDU"}, table["loss"].to_numpy()

    def r_squared(params):
        return 1 - np.mean((loss - LAW.predict(params, columns)) ** 2) / np.var(loss)

    assert r_squared(P) == pytest.approx(0.7722, abs=5e-5)
    bias = np.mean(np.log(LAW.predict(P, columns) / loss))
    assert bias == pytest.approx(-0.0725, abs=1e-3)
    (part,) = fit(LAW, table, Fit(name="own", law=LAW.id, mapping=mapping)).parts
    own = part.estimates()
    assert part.converged
    assert r_squared(own) == pytest.approx(0.94, abs=0.01)
    # It does not find the paper's numbers, which rest on coefficients that were fixed before.
    assert 25 < own["R_D"] < 45
    assert own["R_N"] > 50
    assert 0.35 < own["alpha"] < 0.5

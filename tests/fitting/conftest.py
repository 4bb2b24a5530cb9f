"""Simulated tables, a law that is a parabola, and the digitised Chinchilla losses."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from moelaws import laws
from moelaws.fitting.problem import problem, solve
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Domain, FitProtocol, Parameter, Variable
from moelaws.laws.forms import LinearLaw, one
from moelaws.studies.sparsity.laws.loss import optimal_size


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """As ``fit`` itself: the matrices are small, and threads of BLAS only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def simulated():
    """``simulated(noise, seed)``: 180 runs around the optima of 3 budgets x 6 sparsities."""

    def build(noise=0.003, seed=0, sizes=10):
        law = laws.get("sparsity.loss")
        rows = [
            (C, S, float(optimal_size(law.published, S, C).N) * factor)
            for C in (3e19, 1.7e20, 1e21)
            for S in (0.0, 0.25, 0.5, 0.75, 0.9, 0.98)
            for factor in np.geomspace(1 / 6, 6, sizes)
        ]
        table = pd.DataFrame(rows, columns=["C", "S", "N"])
        table["D"] = table["C"] / (6 * (1 - table["S"]) * table["N"])
        rng = np.random.default_rng(seed)
        exact = law.predict(law.published, table)
        table["L"] = exact * np.exp(noise * rng.standard_normal(len(table)))
        return table.assign(source="simulated", status="completed")

    return build


@pytest.fixture(scope="session")
def dense():
    """``dense(noise, seed)``: losses of the published Chinchilla law on sizes x tokens."""

    def build(noise=0.01, seed=0, sizes=15, tokens=12):
        law = laws.get("chinchilla")
        N = np.repeat(np.geomspace(5e7, 1e10, sizes), tokens)
        D = np.tile(np.geomspace(1e9, 3e11, tokens), sizes)
        errors = noise * np.random.default_rng(seed).standard_normal(len(N))
        L = law.predict(law.published, {"N": N, "D": D}) * np.exp(errors)
        return pd.DataFrame({"N": N, "D": D, "L": L})

    return build


@pytest.fixture(scope="session")
def parabola():
    """The linear law y = p0 + p1 x + p2 x^2, fitted by least squares."""
    return LinearLaw(
        id="parabola",
        title="A parabola",
        source="this test",
        equation="y = p0 + p1*x + p2*x^2",
        latex="",
        variables=(Variable("x", "1", "place", Domain("finite", np.isfinite)),),
        response=Variable("y", "1", "height", Domain("finite", np.isfinite)),
        parameters=tuple(Parameter(f"p{i}", "1", -np.inf, np.inf, "") for i in range(3)),
        features={"p0": one, "p1": lambda c: c["x"], "p2": lambda c: c["x"] ** 2},
        protocol=FitProtocol(objective="squared"),
    )


@pytest.fixture(scope="session")
def solved():
    """``solved(law, table, response, weights, **protocol)``: the problem and its solution."""

    def run(law, table, response, weights=None, **protocol):
        changed = dataclasses.replace(law.protocol, **protocol)
        columns = {v.name: np.asarray(table[v.name]) for v in law.variables}
        rows = Observations(columns=columns, response=np.asarray(response), weights=weights)
        task = problem(law, rows, changed, seed=0)
        return task, solve(task, seed=0)

    return run

"""Derived tables of the generalization study against independent counts and known numbers."""

import numpy as np
import pandas as pd
import pytest

from moelaws.accounting.parameters import count_parameters
from moelaws.analysis.inputs import Inputs
from moelaws.grids.sweep import expand_study
from moelaws.spec.project import Project, load_study
from moelaws.studies.generalization.derived import runs
from moelaws.studies.generalization.derived.exponents import consistency, interval
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from moelaws.tables.simulate import design
from repository import REPOSITORY


@pytest.fixture(scope="module")
def demo():
    return expand_study(load_study("generalization", REPOSITORY), Project(), REPOSITORY)


def test_active_parameters_are_the_built_models_less_what_the_paper_leaves_out(demo):
    table = design(demo).assign(status="completed", L=1.0, source="trained")
    frame = runs.as_counted(Inputs(frame=table)).set_index("run_id")
    for run in demo.runs:
        count, model = count_parameters(run.config.model), run.config.model
        counted = count.active - count.embeddings - count.norms - count.router
        assert frame.loc[run.run_id, "N_act"] == counted
        assert frame.loc[run.run_id, "N_active"] == count.active
        k, M = model.ffn.top_k, model.ffn.n_experts
        R = k * model.n_layers * model.context * np.log(np.e * M / k)
        assert frame.loc[run.run_id, "R"] == pytest.approx(R, rel=1e-12)


def test_an_exponent_that_is_not_above_0_has_no_identities():
    quantities = consistency([0.2, 0.0, -0.1], [0.2, 0.2, 0.2])
    assert np.isfinite(quantities["kappa"][0])
    for name in ("alpha_N", "kappa", "delta_D", "alpha_C"):
        assert np.isnan(quantities[name][1:]).all(), name


def test_an_interval_whose_draws_are_partly_missing_is_missing():
    draws = np.append(0.5, np.linspace(0, 1, 101))
    assert interval(draws, 0.9) == pytest.approx((0.05, 0.95))
    assert interval(draws, 0.9, stretch=2.0) == pytest.approx((0.05**2 / 0.5, 0.95**2 / 0.5))
    assert np.isfinite(interval(np.where(draws > 0.96, np.nan, draws), 0.9)).all()
    assert np.isnan(interval(np.where(draws > 0.9, np.nan, draws), 0.9)).all()
    assert np.isnan(interval(draws[:1], 0.9)).all()


def test_slopes_below_and_above_the_middle_are_separate(tmp_path):
    """Losses over (k, M) at two budgets, whose slopes in ln M are 0.05 and -0.08."""
    rows = [
        {"k": k, "M": M, "D": D,
         "L": 3 + 0.1 * k - D / 1e6 + 0.05 * min(np.log(M / 8), 0) - 0.08 * max(np.log(M / 8), 0)}
        for k in (1, 2) for M in (2, 4, 8, 16, 32) for D in (1e5, 4e5)
    ]  # fmt: skip
    columns = [Column(name, "float", name) for name in ("k", "M", "D", "L")]
    columns.append(Column("sweep", "string", "sweep"))
    path = tmp_path / "runs.parquet"
    write_table(pd.DataFrame(rows).assign(sweep="routing"), columns, path)
    table = runs.routing_slopes(Inputs(frame=None, derived_tables={"runs": path}))
    pooled = table[table["D"].isna()].set_index("part")
    assert pooled.loc[[runs.FEW, runs.MANY], "slope"].tolist() == pytest.approx([0.05, -0.08])
    assert pooled["n"].to_list() == [12, 12]
    assert len(table) == 6

"""Contrasts of runs and optima have an error that leaves out what all runs share."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.files.layout import Results
from moelaws.studies.sparsity.derived import contrasts, optima
from moelaws.tables.parquet import read_table
from sparsity_case import DEMO, simulate, write_case
from study_case import write_documents

M = 120
SETTING = replace(DEMO, budgets=(1e11, 1e12), noise=0.002)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A sweep whose runs were measured on the same documents: nats of each (runs, documents)."""
    root = tmp_path_factory.mktemp("paired")
    frame = simulate(SETTING)
    frame["L_se"] = 0.04
    spread = frame.groupby(["C", "S", "d_model"])["L"].transform("std")
    case = write_case(root, frame.assign(L_seed_sd=spread, n_seeds=2), SETTING)
    results = Results(root / "results")
    paired = write_documents(results, frame, M, seed=5)
    return case, replace(case.inputs, results=results), paired


@pytest.mark.slow
def test_a_run_is_compared_with_the_densest_of_its_budget_width_and_seed(case):
    _, inputs, paired = case
    table = contrasts.derive(inputs)
    assert len(table) == 2 * 3 * 5 * 2  # budgets, sparsities above 0, sizes, seeds
    assert set(table["S_against"]) == {0.0}
    runs, alike = inputs.table.set_index("run_id"), ["C", "d_model", "seed"]
    for row in table.iloc[::13].itertuples():
        own = runs.loc[row.run_id]
        (dense,) = runs.index[(runs[alike] == own[alike]).all(axis=1) & (runs["S"] == 0)]
        assert row.difference == pytest.approx(own["L"] - runs.loc[dense, "L"])
        weights = [(run_id == row.run_id) - float(run_id == dense) for run_id in paired.run_ids]
        assert row.paired_se == pytest.approx(float(paired.standard_error(weights)))
    assert (table["paired_se"] < 0.1 * table["unpaired_se"]).all()
    assert (table.groupby("C")["seed_se"].nunique() == 1).all()
    assert table["seed_se"].nunique() == 2


def test_the_error_of_a_drop_between_optima_is_that_of_other_documents(case):
    """Refitting parabolas and surface to samples of the documents moves the drop by its error."""
    written, inputs, paired = case
    table = optima.optima(inputs.declared_by(written.study.derived_table("optima")))
    own = table[(table["size"] == "total") & (table["C"] == 1e12)].set_index(["method", "S"])
    runs = inputs.table[inputs.table["C"] == 1e12]
    rng = np.random.default_rng(6)
    law = laws.fittable("sparsity.isoflop")
    design = law.design(law.columns({"N": runs["N_total"].to_numpy(), "S": runs["S"].to_numpy()}))
    surface = own.loc["surface"]
    ends = surface.loc[[0.0, 0.75]].reset_index()
    at_ends = law.design({"N": ends["N_star"].to_numpy(), "S": ends["S"].to_numpy()})
    drops, falls = [], []
    for _ in range(300):
        drawn = rng.integers(0, M, M)
        L = paired.nats[runs.index][:, drawn].sum(1) / paired.tokens[drawn].sum()
        high, low = at_ends @ np.linalg.lstsq(design, L)[0]  # flat there: N* may stay
        falls.append(high - low)
        lowest = []
        for S in (0.0, 0.75):
            at_S = (runs["S"] == S).to_numpy()
            a, b, c = np.polyfit(np.log(runs["N_total"][at_S]), L[at_S], 2)
            lowest.append(c - b**2 / (4 * a))
        drops.append(lowest[0] - lowest[1])
    row = own.loc[("parabola", 0.75)]
    assert row["inside"]
    assert row["drop"] == pytest.approx(own.loc[("parabola", 0.0), "L_star"] - row["L_star"])
    assert row["drop_paired_se"] == pytest.approx(np.std(drops), rel=0.15)
    assert surface.loc[0.75, "drop_paired_se"] == pytest.approx(np.std(falls), rel=0.15)
    assert surface.loc[0.75, "drop_paired_se"] < 0.1 * 0.04
    assert surface.loc[0.75, "drop_seed_se"] > 0
    assert np.isnan(surface.loc[0.0, "drop"])


def test_runs_without_losses_by_document_keep_the_error_of_before(case):
    case, inputs, _ = case
    before = replace(inputs, results=Results(case.root / "none"))
    table = contrasts.derive(before)
    assert table["paired_se"].isna().all()
    assert "missing or damaged" in contrasts.derive.warnings(table)[0]
    best = optima.optima(before.declared_by(case.study.derived_table("optima")))
    assert best["drop_paired_se"].isna().all()
    assert best["drop_seed_se"].notna().any()


def test_of_several_trials_the_best_is_compared_and_only_with_its_own_recipe(case, tmp_path):
    """A second rate for each sparse run, and a second warm-up for the widest of them."""
    case, inputs, _ = case
    one = inputs.table[inputs.table["seed"] == 0]
    worse = one[one["S"] > 0].assign(L=lambda rows: rows["L"] + 0.1, lr=2.0)
    warmed = worse["d_model"] == worse["d_model"].max()
    worse.loc[warmed, "L"] -= 0.2
    worse.loc[warmed, "recipe"] = "other warm-up"
    worse["run_id"] = "t" + worse["run_id"].str[1:]
    path = tmp_path / "tuned.parquet"
    searched = replace(inputs, frame=pd.concat([one, worse], ignore_index=True))
    lines = derive(case.study, "tuned", searched, path)
    tuned = read_table(path)
    assert not tuned.duplicated(["C", "S", "N_total"]).any()
    assert len(tuned) == len(one)
    assert len(lines) == 1
    assert lines[0].startswith("some models have several trials")
    own = tuned[tuned["S"] > 0]
    assert (own["trials"] == 2).all()
    table = contrasts.derive(replace(searched, derived_tables={"tuned": path}))
    assert set(table["run_id"]) < set(own["run_id"])
    compared = table[table["S_against"] == 0]
    assert set(compared["d_model"]) == set(one["d_model"]) - {one["d_model"].max()}

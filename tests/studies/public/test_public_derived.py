"""What the study derives of public runs, beside the same by other means."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.studies.public import derived
from public_case import frontier, isoflop_losses, write_isoflop, write_ladder

COLUMNS = ("kind", "variant", "router", "E", "k", "unique_tokens", "N_active", "N_active_nonemb")
COLUMNS += ("L", "bpb", "lr", "N_total_nonemb", "d_model", "batch_tokens", "context")


def table(rows, **columns):
    frame = pd.DataFrame(rows).assign(status="completed", **columns)
    for name in COLUMNS:
        if name not in frame:
            frame[name] = np.nan
    frame["run_id"] = [f"run-{i}" for i in range(len(frame))]
    return Inputs(frame=frame)


def test_the_best_of_each_recipe_size_and_number_of_tokens_is_kept():
    rows = [
        {"dataset": "a", "E": 8, "N_active": 1e8, "D": 1e9, "C": 6e17, "L": 3.0},
        {"dataset": "a", "E": 8, "N_active": 1e8, "D": 1e9, "C": 6e17, "L": 2.9},
        {"dataset": "a", "E": 16, "N_active": 1e8, "D": 1e9, "C": 6e17, "L": 2.8},
        {"dataset": "b", "E": 4, "N_active_nonemb": 2e8, "D": 1e9, "C": 12e17, "bpb": 0.9},
    ]
    best = derived.runs(table(rows)).sort_values("run_id")
    assert best["run_id"].tolist() == ["run-1", "run-2", "run-3"]
    assert best["group"].tolist() == ["a E=8", "a E=16", "b"]  # b has one recipe
    assert best["unit"].tolist() == ["nats/token", "nats/token", "bits/byte"]
    assert best["loss"].tolist() == [2.9, 2.8, 0.9]
    assert best["N"].tolist() == [1e8, 1e8, 2e8]


def test_an_optimum_is_the_vertex_of_the_parabola_through_the_runs_near_it(small):
    runs, optima = small.derived("runs"), small.derived("optima")
    assert len(optima) == 6  # the budget of 1e21 has two sizes, each twice
    for row in optima.itertuples():
        own = runs[runs["C"] == row.C]
        far = np.abs(np.log(own["N"] / own["N"][own["loss"].idxmin()]))
        near = own[far <= max(np.log(4), far.sort_values().iloc[4])]
        a, b, c = np.polyfit(np.log(near["N"]), np.log(near["loss"]), 2)
        assert row.N_star == pytest.approx(np.exp(-b / (2 * a)), rel=1e-6)
        assert row.L_star == pytest.approx(np.exp(c - b**2 / (4 * a)), rel=1e-9)
        assert row.D_star == pytest.approx(row.C / (6 * row.N_star), rel=1e-6)
        assert row.M_star == pytest.approx(6 * row.N_star, rel=1e-6)
        assert row.N_low < row.N_star < row.N_high
        assert row.inside
        assert row.unit == "nats/token"


def test_an_optimum_at_the_end_of_the_sizes_says_so():
    sizes = np.geomspace(1e8, 8e8, 5)
    rows = {"dataset": "a", "N_active": sizes, "D": 1e19 / 6 / sizes, "C": 1e19}
    rows |= {"L": isoflop_losses(1e19, sizes / 10)}
    best = derived.runs(table(rows))
    row = derived.optimum(best)
    assert not row["inside"]
    assert row["note"] == "at the high end of the measured range"
    assert row["N_star"] == pytest.approx(8e8)
    assert derived.optimum(best[:2]) == {}


def test_budgets_whose_compute_agrees_to_a_percent_are_one():
    C = np.array([1e18, 1.009e18, 1.018e18, 1.1e18, 1.101e18])
    frame = pd.DataFrame({"group": "a", "C": C, "N": C / 1e10})
    assert [len(rows) for rows in derived.budgets(frame)] == [3, 2]


@pytest.mark.slow
def test_predictions_are_of_runs_that_no_fit_has_seen(small):
    rows = small.derived("predictions")
    assert set(rows["C"]) == {1e21}
    assert rows.groupby("fit").size().to_dict() == dict.fromkeys(
        ("free", "fixed", "prior", "frontier"), 4
    )
    for name in ("free", "frontier"):
        result = small.fit(name).group({})
        assert result.n == {"free": 45, "frontier": 6}[name]
        law, own = laws.fittable(small.fit(name).law), rows[rows["fit"] == name]
        assert own["value"].tolist() == pytest.approx(law.predict(result.estimates(), own).tolist())
    assert (rows["low"] <= rows["alone_low"]).all()
    assert (rows["high"] >= rows["alone_high"]).all()
    inside = (rows["low"] <= rows["observed"]) & (rows["observed"] <= rows["high"])
    assert rows["inside"].tolist() == inside.tolist()
    own = rows[rows["fit"] == "frontier"]
    assert own["value"].iloc[0] == pytest.approx(frontier(1e21), rel=0.005)


def test_leverage_is_the_ratio_of_compute_at_equal_loss(register):
    register.add("marin-v16", write_isoflop)
    assert register.derived("leverage").empty  # without the ladder
    register.add("marin-ladder", write_ladder, leverage=3.0, noise=0.0)
    del register.frame, register.tables["leverage"]
    rows = register.derived("leverage").set_index("floor")
    exact = rows.loc[1.2]
    assert exact["leverage"] == pytest.approx(3.0, rel=1e-3)
    assert exact["in_time"] == pytest.approx(1.5, rel=1e-3)  # at half the MFU
    assert exact["alpha"] == pytest.approx(0.084, rel=1e-3)
    assert exact["coefficient"] == pytest.approx(66.0, rel=1e-2)
    assert (rows["low"] < 3.0).all()
    assert (rows["high"] > 3.0).all()


def test_the_best_rate_stands_beside_published_laws():
    rows = [
        {"dataset": "a", "lr": lr, "L": L, "N_active_nonemb": 1e8, "D": 1e10, "C": 6e18, "E": 8}
        | {"N_total_nonemb": 8e8, "d_model": 1024, "batch_tokens": 524288, "context": 2048}
        for lr, L in ((1e-4, 3.1), (3e-4, 3.001), (1e-3, 3.0), (3e-3, 3.2))
    ]
    few = [row | {"D": 2e10} for row in rows[:3]]
    (row,) = derived.rates(table(rows + few)).to_dict("records")
    assert (row["lr"], row["lr_low"], row["lr_high"], row["trials"]) == (1e-3, 3e-4, 1e-3, 4)
    assert row["lr_step_law"] == pytest.approx(1.79 * 8e8**-0.713 * 1e10**0.307)
    assert row["batch_step_law"] == pytest.approx(0.58 * 1e10**0.571)
    assert (row["batch_low"], row["batch"], row["batch_high"]) == (524288,) * 3
    assert row["lr_joint"] == pytest.approx(np.exp(8.39) * 1e8**-0.81 * 8**-0.25)
    assert row["lr_marin"] == pytest.approx(1.63 * 1e10**-0.2813 * 1024**-0.3678 * 128**0.5)

"""The search: near-optimal runs, laws under noise, best sizes; its figures show every run."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperparameters_case import DEMO, STUDY, published, table, write_case
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.report import read_fit
from moelaws.studies.hyperparameters.derived import near_optimal
from moelaws.studies.hyperparameters.derived.near_optimal import modified_z
from picture import assert_legible


@pytest.mark.parametrize(("kind", "suffix"), [("moe", ""), ("dense", "_dense"), ("both", "_both")])
@pytest.mark.parametrize(("fit", "column"), [("lr", "lr"), ("batch", "batch_tokens")])
def test_the_law_of_the_measured_losses_is_the_engines(searched, kind, suffix, fit, column):
    """Two computations of one regression: the fit of the study, and draw 0 of the noise table."""
    rows = pd.read_parquet(searched.derived["noise"])
    own = rows[(rows["kind"] == kind) & (rows["setting"] == column) & (rows["draw"] == 0)]
    (result,) = read_fit(searched.fits[fit + suffix]).parts
    law = result.estimates()
    assert own["exponent"].item() == pytest.approx(law["exponent"], rel=1e-6)
    assert np.log(own["coefficient"].item()) == pytest.approx(np.log(law["coefficient"]), rel=1e-6)
    assert own["n"].item() == result.n


def test_without_a_second_seed_there_are_laws_and_no_draws(tmp_path):
    frame = table("demo", DEMO)
    frame = frame[frame["sweep"] != "seeds"].assign(n_seeds=1, L_seed_sd=np.nan)
    case = write_case(tmp_path, frame)
    rows = pd.read_parquet(case.derived["noise"])
    assert set(rows["draw"]) == {0}
    assert rows.groupby(["kind", "setting"]).size().eq(1).all()
    lines = near_optimal.derive.warnings(pd.read_parquet(case.derived["near_optimal"]))
    assert any("no run was repeated with another seed" in line for line in lines)
    assert any("the best run has the lowest batch tried" in line for line in lines)


def test_best_sizes_are_table_5s(tmp_path):
    """The paper's grid and bowls about Table 5: minima of parabolas lie within 5 % of it."""
    best = near_optimal.best_sizes(Inputs(frame=table("paper", published(1e19, noise=1e-3))))
    assert len(best) == 14
    inside = best[best["inside"]]
    assert len(inside) >= 12
    moe, dense = (inside[inside["kind"] == kind] for kind in ("moe", "dense"))
    assert np.allclose(moe["M_star"], 0.1915 * moe["C"] ** 0.5095, rtol=0.05)
    assert np.allclose(dense["M_star"], 0.0655 * dense["C"] ** 0.5422, rtol=0.05)
    assert np.allclose(inside["M_star"] * inside["D_star"], inside["C"])


def test_two_sizes_give_a_best_run_and_no_parabola():
    frame = table("demo", DEMO)
    few = frame[~(frame["sweep"].str.contains("sizes") & (frame["d_model"] > 12))]
    best = near_optimal.best_sizes(Inputs(frame=few.reset_index(drop=True)))
    assert (best["note"][best["n"] < 3] == "fewer than three sizes").all()
    assert best["M_star"][best["n"] < 3].isna().all()
    assert best["M_argmin"].notna().all()


def test_each_optimizer_has_a_search_of_its_own():
    """Muon's runs beside AdamW's, at rates and losses of their own, change nothing of AdamW's."""
    adamw = table("demo", DEMO)
    muon = adamw.assign(
        run_id="m" + adamw["run_id"], optimizer="muon", lr=3 * adamw["lr"], L=0.9 * adamw["L"]
    )
    both = Inputs(frame=pd.concat([adamw, muon], ignore_index=True))
    for derived in (near_optimal.derive, near_optimal.best_sizes):
        alone = derived(Inputs(frame=adamw))
        pd.testing.assert_frame_equal(derived(both), alone)
        assert len(derived(both, optimizer="muon")) == len(alone)
    assert set(near_optimal.derive(both, optimizer="muon")["run_id"].str[0]) == {"m"}


runs = st.lists(
    st.tuples(
        st.sampled_from([1e18, 3e18]), st.sampled_from([1e-3, 2e-3, 4e-3]), st.floats(2, 2.02)
    ),
    min_size=1,
    max_size=25,
)


def frame_of(rows):
    return pd.DataFrame(rows, columns=["C", "lr", "L"])


@given(runs, st.randoms(use_true_random=False))
def test_near_is_the_quarter_percent_of_each_budget_in_any_order_and_unit(rows, random):
    frame = frame_of(rows)
    near, mask = (near_optimal.near_optimal(frame, settings) for settings in ([], ["lr"]))
    least = frame.groupby("C")["L"].transform("min")
    assert near.tolist() == (1.0025 * least >= frame["L"]).tolist()
    assert not mask[~near].any()  # outliers are only ever removed
    order = list(range(len(frame)))
    random.shuffle(order)
    assert near_optimal.near_optimal(frame.iloc[order], ["lr"]).sort_index().equals(mask)
    other = frame.assign(lr=8 * frame["lr"], C=2 * frame["C"])
    assert near_optimal.near_optimal(other, ["lr"]).equals(mask)


def test_a_lone_setting_far_from_all_others_is_an_outlier():
    lr = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 40.0]) * 1e-3
    frame = pd.DataFrame({"C": 1e18, "lr": lr, "batch_tokens": 2**18, "L": 2.0})
    kept = near_optimal.near_optimal(frame, ["lr", "batch_tokens"])
    assert kept.tolist() == [True] * 6 + [False]
    assert near_optimal.near_optimal(frame, ["batch_tokens"]).all()
    spread = frame.assign(lr=1e-3 * 2.0 ** np.arange(7))  # a wide basin has no outliers
    assert near_optimal.near_optimal(spread, ["lr"]).all()


def test_modified_z_of_iglewicz_and_hoaglin():
    x = pd.Series([1.0, 2.0, 3.0, 4.0, 100.0])  # median 3, deviations 2 1 0 1 97, their median 1
    assert modified_z(x).tolist() == pytest.approx([-1.349, -0.6745, 0, 0.6745, 65.4265])
    mostly_equal = pd.Series([0.0] * 9 + [10.0])  # deviation 0; the mean one is 1
    assert modified_z(mostly_equal).iloc[-1] == pytest.approx(10 / 1.2533)
    assert (modified_z(pd.Series([0.1] * 4)) == 0).all()


@pytest.mark.parametrize("figure", [figure.name for figure in STUDY.figures])
def test_nothing_is_clipped_at_the_pages_edge(figure, searched):
    assert_legible(searched.sheet(figure))


def test_every_run_of_the_search_and_eq_5_are_in_f7(searched):
    data = searched.sheet("F7").data
    runs = pd.read_parquet(searched.derived["near_optimal"])
    for panel, column in (("a", "batch_tokens"), ("b", "lr")):
        drawn = data[(data["panel"] == panel) & (data["series"] == "search")]
        assert sorted(drawn["y"]) == pytest.approx(sorted(runs[column]))
    line = data[(data["panel"] == "b") & data["series"].str.startswith("published")]
    assert np.allclose(line["y"], 1.1576 * line["x"] ** -0.1529)

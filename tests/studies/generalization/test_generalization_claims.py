"""The generalization paper's claims: each rule gives each verdict where it should."""

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.fitted import FittedInputs
from moelaws.claims import judge
from moelaws.claims.base import Verdict
from moelaws.fitting.report import Estimate, GroupFit, write_fit
from moelaws.grids.sweep import expand_study
from moelaws.laws.joint import loss as joint
from moelaws.spec.project import Project, load_study
from moelaws.studies.generalization import claims
from moelaws.studies.generalization.derived import dimension, exponents, runs
from moelaws.tables.describe import kept_runs
from moelaws.tables.parquet import write_table
from nulls.generalization import EXPONENTS, LOW_END, over_powers
from nulls.trial import decided
from repository import REPOSITORY
from study_case import OPTIMUM, as_fitted

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict
STUDY = load_study("generalization", REPOSITORY)


def judged(claim, derived_tables=None, fits=None):
    """The verdict on the claim, which says what would decide where the runs cannot tell."""
    inputs = FittedInputs(frame=None, fits=fits or {}, derived_tables=derived_tables or {})
    (entry,) = (entry for entry in STUDY.claims if entry.name == claim)
    result = judge.judged(STUDY, entry, inputs)
    assert bool(result["needed"]) == (result["verdict"] is CANNOT_TELL)
    return result["verdict"]


def with_table(folder, name, table, frame):
    """Writes the frame as the derived table ``name``."""
    path = folder / f"{name}.parquet"
    write_table(frame, [c for c in table.columns if c.name in frame.columns], path)
    return {name: path}


def of_dimensions(folder, frame):
    return with_table(folder, "dimension", dimension.dimensions, frame)


def slopes(folder, *corpora, **columns):
    """The derived table slopes: value and ends for each corpus."""
    ends = ["value_low", "value_high"]
    frame = pd.DataFrame(corpora, columns=ends).assign(
        corpus=[f"text {i}" for i in range(len(corpora))], value=lambda own: own[ends].mean(axis=1)
    )
    frame = frame.assign(level=0.9, n=20, aicc=np.nan, **{"r2": np.nan, **columns})
    return with_table(folder, "slopes", exponents.slopes, frame)


@pytest.mark.parametrize(
    ("corpora", "r2", "verdict"),
    [([(0.08, 0.12)], 0.95, SUPPORTED), ([(-0.12, -0.08)], 0.95, NOT_SUPPORTED),
     ([(-0.01, 0.02)], 0.95, CANNOT_TELL), ([(0.04, 0.06)], 0.6, CANNOT_TELL),
     ([(0.08, 0.12), (-0.01, 0.09)], 0.95, CANNOT_TELL),
     ([(0.08, 0.12), (-0.09, -0.01)], 0.95, NOT_SUPPORTED)],
)  # fmt: skip
def test_the_loss_over_active_parameters_on_each_corpus(tmp_path, corpora, r2, verdict):
    tables = slopes(tmp_path, *corpora, floor="none", series="model", name="alpha", r2=r2)
    assert judged("active_parameters", tables) is verdict


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [((0.01, 0.05), (-0.06, -0.02), SUPPORTED), ((-0.05, -0.01), (-0.06, -0.02), NOT_SUPPORTED),
     ((0.01, 0.05), (0.01, 0.02), NOT_SUPPORTED), ((-0.01, 0.05), (-0.06, -0.02), CANNOT_TELL),
     ((np.nan, np.nan), (np.nan, np.nan), CANNOT_TELL)],
)  # fmt: skip
def test_two_regimes_need_both_signs(tmp_path, few, many, verdict):
    halves = ((runs.FEW, few), (runs.MANY, many))
    rows = [(half, np.nan, np.mean(ends), *ends, 0.9, 12) for half, ends in halves]
    frame = pd.DataFrame(rows, columns=runs.routing_slopes.names)
    tables = with_table(tmp_path, "routing", runs.routing_slopes, frame)
    assert judged("routing_regimes", tables) is verdict


def states(layers, width, profile, corpus="text 0", seed=0, bpb=2.0):
    """A derived table of one model whose dimension follows ``profile`` over its blocks."""
    rows = []
    for layer in range(layers + 1):
        depth = layer / layers
        rows.append(
            {
                "corpus": corpus, "run_id": f"{corpus}{seed}", "bpb": bpb, "n_layers": layers,
                "d_model": width, "width": 8, "D": 1e6,
                "seed": seed, "layer": layer, "depth": depth, "middle": 0.4 <= depth <= 0.6,
                "points": 900, "neighbours": 20, "dimension": profile(depth),
                "mad": 0.1, "full": width / 4,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("width", "size", "verdict"),
    [(512, 20, SUPPORTED), (24, 1, SUPPORTED), (512, 80, NOT_SUPPORTED), (24, 3, CANNOT_TELL)],
)
def test_small_is_a_quarter_of_what_full_width_seems_to_have(tmp_path, width, size, verdict):
    tables = of_dimensions(tmp_path, states(8, width, lambda _: size))
    assert judged("small_dimension", tables) is verdict


@pytest.mark.parametrize(
    ("layers", "slope", "models", "verdict"),
    [(8, -10, 2, SUPPORTED), (8, 10, 2, NOT_SUPPORTED), (8, 0, 2, CANNOT_TELL),
     (6, -10, 2, CANNOT_TELL), (8, -10, 1, CANNOT_TELL), (8, 10, 1, NOT_SUPPORTED)],
)  # fmt: skip
def test_the_profile_over_depth_falls(tmp_path, layers, slope, models, verdict):
    each = [states(layers, 512, lambda x: 20 + slope * x, seed=seed) for seed in range(models)]
    assert judged("depth_profile", of_dimensions(tmp_path, pd.concat(each))) is verdict


@pytest.mark.parametrize(
    ("size", "verdict"), [(4.0, SUPPORTED), (40.0, NOT_SUPPORTED), (8.0, CANNOT_TELL)]
)
def test_the_dimension_gives_the_exponent_at_a_smoothness_near_one(tmp_path, size, verdict):
    """alpha_N = 0.5: s = d/4."""
    tables = of_dimensions(tmp_path, states(4, 24, lambda _: size))
    tables |= slopes(tmp_path, (0.48, 0.52), floor="fitted", series="model", name="alpha")
    assert judged("dimension_and_exponents", tables) is verdict


@pytest.mark.parametrize("claim", EXPONENTS)
def test_a_floor_at_its_bound_leaves_the_exponents_open(project_folder, claim):
    """Losses of a small exponent above a floor look as those of an even smaller one above none."""
    tables = over_powers(10, **LOW_END)
    (floor,) = tables.derived("slopes", series="model", floor="fitted", name="L_inf")["value"]
    assert floor == pytest.approx(1e-3)
    assert decided(STUDY, claim, tables) is CANNOT_TELL


def probed(dimensions, spread, rng, models=4):
    """The derived table dimension of corpora, from the simplest on, several models on each."""
    return pd.concat(
        states(4, 512, lambda _, size=d + own: size, f"text {i}", seed, 2.0 + 0.1 * i)
        for i, d in enumerate(dimensions)
        for seed, own in enumerate(spread * rng.standard_normal(models))
    )


@pytest.mark.parametrize(
    ("dimensions", "verdict"),
    [([10, 12, 14, 16], SUPPORTED), ([10, 12, 14], CANNOT_TELL), ([10, 14, 12, 16], CANNOT_TELL),
     ([12, 10, 14], NOT_SUPPORTED), ([10], CANNOT_TELL)],
)  # fmt: skip
def test_four_corpora_in_order_show_that_the_simplest_is_lowest(tmp_path, dimensions, verdict):
    frame = probed(dimensions, 0.1, np.random.default_rng(0))
    assert judged("simplest_corpus", of_dimensions(tmp_path, frame)) is verdict


def one_law(folder, changes, counts, spread=1e-3):
    """The study's inputs with the published law as the fit joint, its parameters changed."""
    values = joint.LAW.published | changes
    rng = np.random.default_rng(0)
    drawn = {n: x * (1 + spread * rng.standard_normal(80)) for n, x in values.items()}
    params = {name: Estimate(value, None, None) for name, value in values.items()}
    part = GroupFit({}, 50, 0.0, True, params, {}, None, OPTIMUM)
    path = folder / "joint.json"
    write_fit(as_fitted(STUDY.fit("joint"), [part], pd.DataFrame(drawn)), path)
    rows = [(E, N, D) for E in counts for N in (1e7, 5e8) for D in (5e8, 3.2e10)]
    frame = pd.DataFrame(rows, columns=["E", "N_active", "D"])
    frame = frame.assign(sweep="experts", status="completed", L=3.0, source="simulated")
    return FittedInputs(frame=frame, fits={"joint": path})


@pytest.mark.parametrize(
    ("claim", "changes", "counts", "verdict"),
    [("kappa_grows", {}, 6, SUPPORTED), ("kappa_grows", {}, 3, CANNOT_TELL),
     ("kappa_grows", {"gamma": -0.01, "zeta": 0.026}, 6, NOT_SUPPORTED),
     ("kappa_grows", {"gamma": 0.0, "zeta": 0.0}, 6, CANNOT_TELL),
     ("ratio_rises", {}, 6, SUPPORTED), ("ratio_rises", {}, 3, CANNOT_TELL),
     ("ratio_rises", {"delta": 0.8, "gamma": 0.0, "zeta": 0.0}, 6, NOT_SUPPORTED)],
)  # fmt: skip
def test_what_changes_with_experts_by_one_law(tmp_path, claim, changes, counts, verdict):
    inputs = one_law(tmp_path, changes, [1, 2, 4, 8, 16, 32][:counts])
    result = judge.judged(STUDY, STUDY.entry("claims", claim), inputs)
    assert result["verdict"] is verdict
    if claim == "kappa_grows" and not changes and counts == 6:
        assert result["value"] == pytest.approx(0.126, abs=0.002)  # as the paper's Table 5


def in_an_order_by_chance(rng):
    """Dimensions that differ between four corpora, whatever their simplicity."""
    return probed(rng.permutation([10, 12, 14, 16]), 0.1, rng)


def layers_by_chance(rng):
    each = [states(8, 512, lambda _: 20 + 5 * rng.standard_normal(), seed=i) for i in range(2)]
    return pd.concat(each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "drawn"),
    [("simplest_corpus", in_an_order_by_chance), ("depth_profile", layers_by_chance)],
)
def test_chance_supports_a_rule_in_at_most_ten_of_a_hundred_tables(tmp_path, claim, drawn):
    frames = map(drawn, map(np.random.default_rng, range(100)))
    verdicts = [judged(claim, of_dimensions(tmp_path, frame)) for frame in frames]
    assert verdicts.count(SUPPORTED) <= 10


def test_states_that_fill_their_width_are_not_small():
    """Levina-Bickel: 1,024 normal points in 512 dimensions seem to have a fifth of them."""
    cloud = dimension.over_subsamples(np.random.default_rng(5).standard_normal((1200, 512)))
    assert cloud["dimension"] < 0.25 * 512
    full = dimension.of_full_width(cloud["subsample"], 512)
    assert cloud["dimension"] == pytest.approx(full, rel=0.05)


def test_two_models_of_the_node_tier_are_deep_enough_for_a_profile():
    """As `needed` of the claim says."""
    sweep = expand_study(STUDY, Project(tier="node"), REPOSITORY)
    kept = kept_runs(sweep)
    deep = [run for run in sweep.runs if run.config.model.n_layers >= claims.MIN_LAYERS]
    assert len([run for run in deep if run.run_id in kept]) == claims.MIN_MODELS == 2

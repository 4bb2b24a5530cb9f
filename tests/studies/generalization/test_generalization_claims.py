"""The generalization paper's claims: each rule gives each verdict where it should."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.claims import judge
from moelaws.claims.base import Verdict
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.studies.generalization.derived import dimension, exponents, runs
from moelaws.tables.parquet import write_table
from repository import REPOSITORY

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict
STUDY = load_study("generalization", REPOSITORY)
X = np.geomspace(4e3, 5e4, 12)


def judged(claim, derived_tables=None, fits=None):
    """The verdict on the claim, which says what would decide where the runs cannot tell."""
    inputs = FittedInputs(frame=None, fits=fits or {}, derived_tables=derived_tables or {})
    (entry,) = (entry for entry in STUDY.claims if entry.name == claim)
    result = judge.judged(STUDY, entry, inputs)
    assert bool(result["needed"]) == (result["verdict"] is CANNOT_TELL)
    return result["verdict"]


def with_table(folder, name, table, frame):
    """Writes the frame as the derived table ``name``."""
    path = folder / "derived.parquet"
    write_table(frame, [c for c in table.columns if c.name in frame.columns], path)
    return {name: path}


def with_fit(folder, name, ref, L):
    spec = Fit(name=name, law=ref, mapping={}, units={"x": "1"}, bootstrap=30)
    table = pd.DataFrame({"x": X, "L": L}).assign(source="trained")
    write_fit(fit(laws.fittable(ref), table, spec), folder / f"{name}.json")
    return {name: folder / f"{name}.json"}


@pytest.mark.parametrize(
    ("exponent", "noise", "verdict"),
    [(0.1, 0.002, SUPPORTED), (-0.1, 0.002, NOT_SUPPORTED), (0.0, 0.01, CANNOT_TELL),
     (0.05, 0.05, CANNOT_TELL)],
)  # fmt: skip
def test_the_loss_over_active_parameters(tmp_path, exponent, noise, verdict):
    L = 3 * (X / X[0]) ** -exponent
    L *= np.exp(noise * np.random.default_rng(0).standard_normal(len(X)))
    fits = with_fit(tmp_path, "model_line", "generalization.scaling", L)
    assert judged("active_parameters", fits=fits) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.8, 1.3, SUPPORTED), (2.1, 4.0, NOT_SUPPORTED), (0.1, 0.4, NOT_SUPPORTED),
     (0.4, 1.1, CANNOT_TELL), (np.nan, np.nan, CANNOT_TELL)],
)  # fmt: skip
def test_exponents_are_consistent_within_a_factor_of_two(tmp_path, low, high, verdict):
    rows = [
        ("both", "kappa", np.sqrt(low * high), low, high),
        ("model", "alpha", 0.4, 0.3, 0.5),
        ("data", "alpha", 0.3, 0.2, 0.4),
    ]
    frame = pd.DataFrame(rows, columns=["series", "name", "value", "value_low", "value_high"])
    frame = frame.assign(floor="fitted", level=0.9, n=20, aicc=np.nan, r2=np.nan)
    tables = with_table(tmp_path, "slopes", exponents.slopes, frame)
    assert judged("exponent_identity", tables) is verdict


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [((0.01, 0.05), (-0.06, -0.02), SUPPORTED), ((-0.05, -0.01), (-0.06, -0.02), NOT_SUPPORTED),
     ((0.01, 0.05), (0.01, 0.02), NOT_SUPPORTED), ((-0.01, 0.05), (-0.06, -0.02), CANNOT_TELL),
     ((np.nan, np.nan), (np.nan, np.nan), CANNOT_TELL)],
)  # fmt: skip
def test_two_regimes_need_both_signs(tmp_path, few, many, verdict):
    rows = [
        (half, np.nan, np.mean(ends), *ends, 0.9, 12, 4)
        for half, ends in ((runs.FEW, few), (runs.MANY, many))
    ]
    frame = pd.DataFrame(rows, columns=runs.routing_slopes.names)
    tables = with_table(tmp_path, "routing", runs.routing_slopes, frame)
    assert judged("routing_regimes", tables) is verdict


def states(layers, width, profile):
    """A derived table of one model whose dimension follows ``profile`` over its blocks."""
    rows = []
    for layer in range(layers + 1):
        depth = layer / layers
        rows.append(
            {
                "run_id": "r", "n_layers": layers, "d_model": width, "width": 8, "D": 1e6,
                "seed": 0, "layer": layer, "depth": depth, "middle": 0.4 <= depth <= 0.6,
                "points": 900, "subsample": 450, "neighbours": 20, "dimension": profile(depth),
                "mad": 0.1,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("width", "size", "verdict"),
    [(512, 20, SUPPORTED), (24, 3, SUPPORTED), (512, 300, NOT_SUPPORTED), (24, 12, CANNOT_TELL)],
)
def test_small_is_a_quarter_of_the_width(tmp_path, width, size, verdict):
    derived = with_table(
        tmp_path, "dimension", dimension.dimensions, states(8, width, lambda _: size)
    )
    assert judged("small_dimension", derived) is verdict


@pytest.mark.parametrize(
    ("layers", "slope", "verdict"),
    [(8, -10, SUPPORTED), (8, 10, NOT_SUPPORTED), (8, 0, CANNOT_TELL), (6, -10, CANNOT_TELL)],
)
def test_the_profile_over_depth_falls(tmp_path, layers, slope, verdict):
    frame = states(layers, 512, lambda depth: 20 + slope * depth)
    tables = with_table(tmp_path, "dimension", dimension.dimensions, frame)
    assert judged("depth_profile", tables) is verdict


@pytest.mark.parametrize(
    ("size", "verdict"), [(4.0, SUPPORTED), (40.0, NOT_SUPPORTED), (8.0, CANNOT_TELL)]
)
def test_the_dimension_gives_the_exponent_at_a_smoothness_near_one(tmp_path, size, verdict):
    """alpha_N = 0.5: s = d/4."""
    noise = np.exp(0.002 * np.random.default_rng(1).standard_normal(len(X)))
    L = (60 / X**0.5 + 2) * noise
    fits = with_fit(tmp_path, "model_floor", "generalization.scaling:floor", L)
    derived = with_table(tmp_path, "dimension", dimension.dimensions, states(4, 24, lambda _: size))
    assert judged("dimension_and_exponents", derived, fits) is verdict


@pytest.mark.parametrize(
    ("points", "low", "high", "verdict"),
    [(6, 0.05, 0.2, SUPPORTED), (6, -0.2, -0.05, NOT_SUPPORTED), (6, -0.1, 0.2, CANNOT_TELL),
     (3, 0.05, 0.2, CANNOT_TELL)],
)  # fmt: skip
def test_kappa_grows_by_the_interval_of_its_exponent(tmp_path, points, low, high, verdict):
    row = ("own", "generalization.kappa", "rho", (low + high) / 2, low, high, 0.9, points)
    frame = pd.DataFrame([row], columns=exponents.amplification.names)
    tables = with_table(tmp_path, "amplification", exponents.amplification, frame)
    assert judged("kappa_grows", tables) is verdict

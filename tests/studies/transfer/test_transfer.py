"""The study of transfer: best rates, drifts and costs of tables that are known exactly."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.derive import derive
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.pinning import transferred
from moelaws.figures.draw import make
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.studies.transfer.derived import ladders_of, optima
from nulls.transfer import BEST, CURVATURE, GAIN, GRID, LADDERS, STUDY, losses


@cache
def exact(**truth):
    return optima(Inputs(frame=losses(0, noise=1e-9, **truth)), **LADDERS)


def of(table, along, rule):
    return table.query("along == @along and rule == @rule and place == 'largest'").iloc[0]


@pytest.mark.parametrize(("along", "ratio"), [("width", 8), ("depth", 4), ("experts", 8)])
def test_the_best_rate_drifts_as_in_the_losses(along, ratio):
    for rule, power in ("alone", 0.3), ("transfer", -0.1):
        row = of(exact(alone=0.3, transfer=-0.1), along, rule)
        assert row["lr_star"] == pytest.approx(BEST * ratio**-power, rel=1e-4)
        assert row["drift"] == pytest.approx(-power * np.log10(ratio), abs=1e-4)
        assert row["power"] == pytest.approx(-power, abs=1e-3)
        assert row["regret"] == pytest.approx(CURVATURE * (power * np.log(ratio)) ** 2, rel=1e-3)


def test_a_wider_model_gains_what_the_losses_say():
    rows = exact(alone=0.3).query("along == 'width' and rule == 'transfer' and place != 'base'")
    assert rows["gain"].to_numpy() == pytest.approx(3 * [GAIN * np.log(2)], rel=1e-4)


def test_of_a_best_rate_at_an_end_of_those_tried_nothing_is_said():
    row = of(exact(alone=1.0), "experts", "alone")
    assert row["note"] == "at the low end of the measured range"
    assert row[["lr_star", "drift", "regret"]].isna().all()


def test_an_end_rate_that_moves_the_best_one_widens_its_interval():
    frame = losses(0)
    highest = (frame["sweep"] == "base") & (frame["lr"] > 0.02)
    inputs = Inputs(frame=frame.assign(L=frame["L"] + 0.7 * highest))
    _, (base, *_) = next(ladders_of(inputs, LADDERS["ladders"]))
    rest = base.near[base.near["lr"] < 0.02]
    a, b, _ = np.polyfit(np.log(rest["lr"]), rest["L"], 2)
    without = -b / (2 * a)
    assert base.moves == pytest.approx([without - base.best.x[0]], rel=1e-6)
    assert abs(base.moves[0]) > np.log(2) / 4
    row = optima(inputs, **LADDERS).query("place == 'base'").iloc[0]
    assert row["lr_low"] <= np.exp(without) <= row["lr_high"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of width d has at step t the loss that the base has at t times (d / 32)^(1/3)."""
    results = Results(tmp_path_factory.mktemp("results"))
    frame = losses(0, alone=0.3).assign(source="trained")
    steps = np.arange(1, 201)
    for run in frame.itertuples():
        loss = 6 - np.log(steps * (run.d_model / 32) ** (1 / 3)) / 3
        results.run(run.run_id).mkdir(parents=True)
        norm = np.where(steps % 32 < run.n_layers, 1.1, 0.9)
        history = pd.DataFrame({"step": steps, "tokens": 2560 * steps, "loss": loss})
        history["grad_norm"] = norm
        history.to_parquet(results.run(run.run_id) / "history.parquet")
    return Inputs(frame=frame, results=results)


def test_steps_to_an_early_loss_are_counted_on_the_runs_own_histories(trained):
    row = of(optima(trained, **LADDERS), "width", "transfer")
    # After a fourth of its 200 steps; a step is 2 % of these.
    assert row["later"] == pytest.approx(0.5, abs=0.05)
    deepest = of(optima(trained, **LADDERS), "depth", "transfer")
    assert deepest["clipped"] == pytest.approx(12 / 32, abs=0.03)


@pytest.mark.parametrize("name", [figure.name for figure in STUDY.figures])
def test_each_figure_has_a_panel_for_each_ladder(trained, tmp_path, name):
    figure = STUDY.entry("figures", name)
    path = tmp_path / "optima.parquet"
    derive(STUDY, "optima", trained, path)
    inputs = replace(trained, derived_tables={"optima": path})
    sheet = make(STUDY, name, inputs)
    assert len(sheet.panels) == 5 * len(figure.panels)
    drawn = {panel.ax.get_title(loc="left") for panel in sheet.panels}
    assert all(any(along in title for title in drawn) for along in LADDERS["ladders"])


def test_a_ladder_whose_base_has_no_best_rate_has_an_empty_panel(tmp_path):
    frame = losses(0)
    falling = (frame["sweep"] == "base") & (frame["optimizer"] == "muon")
    inputs = Inputs(frame=frame.assign(L=frame["L"].mask(falling, 3 - frame["lr"])))
    derive(STUDY, "optima", inputs, path := tmp_path / "optima.parquet")
    sheet = make(STUDY, "regret", replace(inputs, derived_tables={"optima": path}))
    empty = [panel for panel in sheet.panels if not panel.ax.axison]
    assert [panel.ax.get_title(loc="left") for panel in empty] == ["(d) muon"]


def test_the_best_rate_of_each_share_of_experts_is_pinned(trained, tmp_path):
    paths = {name: tmp_path / f"{name}.parquet" for name in ("bases", "optima")}
    for name, path in paths.items():
        derive(STUDY, name, trained, path)
    inputs = replace(trained, derived_tables=paths)
    pins = transferred(inputs, {run.run_id: run.config for run in GRID})
    # In these losses the best rate falls as E^-0.3 where another share of experts is a ladder.
    for E, rate in (8, BEST), (16, BEST * 2**-0.3), (2, BEST):
        own = pins.of(2, E, "adamw")
        assert own.lr == pytest.approx(rate, rel=0.1)
        assert own.lr_interval[0] < own.lr < own.lr_interval[1]
        shape = {"d_model": 32, "n_layers": 3, "n_heads": 2, "n_kv": 2}
        mixture = {"n_experts": E, "top_k": 2, "d_expert": 64}
        assert own.base.model_dump(exclude_none=True) == shape | mixture
        assert (own.D, own.batch, own.context, own.init_std) == (512_000, 4, 128, 0.1)
    assert pins.of(4, 16, "muon") is pins.of(2, 8, "muon")
    assert pins.of(None, None, "adamw").base.d_ffn == 128
    assert pins.of(2, 4, "adamw") is None
    assert pins.exponent == pytest.approx(-0.32, abs=0.1)
    assert pins.exponent_interval[0] < pins.exponent < pins.exponent_interval[1]
    # A base whose runs do not bound the best rate from below is left out.
    bases = pd.read_parquet(tmp_path / "bases.parquet")
    bases.assign(lr_low=bases["lr_low"].where(bases["E"] != 16, 0.0)).to_parquet(tmp_path / "open")
    pd.read_parquet(paths["optima"]).query("along != 'tokens'").to_parquet(tmp_path / "without")
    open_ones = {"bases": tmp_path / "open", "optima": tmp_path / "without"}
    inputs = replace(trained, derived_tables=open_ones)
    bounded = transferred(inputs, {run.run_id: run.config for run in GRID})
    assert {*pins.bases} - {*bounded.bases} == {pins.of(2, 16, "adamw")}
    assert (bounded.exponent, bounded.exponent_from[:6]) == (-0.32, "HyperP")
    with pytest.raises(UserError, match="only trained ones are pinned"):
        transferred(Inputs(frame=losses(0)), {})

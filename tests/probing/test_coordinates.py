"""The coordinate check: slopes that are known, and what a small check prints and draws."""

import json

import pandas as pd
import pytest

from command_line import call
from moelaws.analysis.coordinates import slopes
from moelaws.probing.coordinates import SIZES, STEPS, arms
from moelaws.spec.errors import UserError

QUANTITIES = (
    "stream", "scores", "attention", "router logits", "hidden units", "experts", "logits",
)  # fmt: skip


def runs_of(slope_of):
    """Rows whose RMS is an exact power of the size, with little noise of seeds."""
    rows = []
    for ladder, sizes in SIZES.items():
        for arm in arms(ladder, "adamw"):
            for quantity in QUANTITIES:
                for step in (0, *STEPS):
                    slope = slope_of(arm, step, quantity)
                    rows += [
                        {**arm._asdict(), "size": size, "seed": seed, "step": step,
                         "quantity": quantity, "rms": 3 * size ** (slope + 0.01 * (seed - 1))}
                        for size in sizes
                        for seed in range(3)
                    ]  # fmt: skip
    return pd.DataFrame(rows)


def as_predicted(arm, step, quantity):
    if arm.parameterization != "completep":
        return 1.0
    return -0.5 if arm.ladder == "width" and not step and quantity.endswith("logits") else 0.0


def failed(slope_of):
    rows = slopes(runs_of(slope_of))
    for row in rows:
        assert row["low"] < row["slope"] < row["high"]
    return {
        (row["ladder"], row["parameterization"], row["step"], row["quantity"])
        for row in rows
        if row["passes"] is False
    }


def test_slopes_as_predicted_pass():
    assert failed(as_predicted) == set()


@pytest.mark.parametrize(("place", "slope"), [
    (("width", "completep", 1, "attention"), 0.2),
    (("width", "completep", 0, "router logits"), 0.0),
    (("depth", "completep", 10, "stream"), -0.2),
    (("width", "standard", 3, "logits"), 0.4),
    (("depth", "mup", 3, "stream"), 0.1),
])  # fmt: skip
def test_each_slope_that_leaves_its_prediction_fails(place, slope):
    def other(arm, step, quantity):
        its = (arm.ladder, arm.parameterization, step, quantity) == place
        return slope if its else as_predicted(arm, step, quantity)

    assert failed(other) == {place}


def test_a_wide_interval_fails():
    runs = runs_of(as_predicted)
    runs["rms"] *= runs["size"] ** (0.2 * (runs["seed"] - 1))
    assert {row["passes"] for row in slopes(runs) if row["parameterization"] == "completep"} == {
        False, None,
    }  # fmt: skip


def test_a_small_check_is_drawn_and_without_intervals_it_fails(tmp_path):
    words = ["--widths", "32,48", "--depths", "1,2", "--seeds", "1"]
    done = call("coordinates", *words, "--out", tmp_path / "c.pdf", "--json")
    assert done.exit_code == 1
    rows = json.loads(done.stdout)
    assert {row["passes"] for row in rows if row["parameterization"] == "completep"} == {
        False,
        None,
    }
    assert {row["low"] for row in rows} == {None}
    assert (tmp_path / "c.png").stat().st_size > 10_000
    at_base = pd.read_csv(tmp_path / "c.csv").query("x == 32")
    of = at_base["series"].str.split(", ", expand=True)
    values = at_base.assign(arm=of[0], label=of[1]).pivot(
        index=["panel", "label"], columns="arm", values="y"
    )
    assert len(values) == len(QUANTITIES) * 4
    pd.testing.assert_series_equal(values["completep"], values["standard"], check_names=False)


def test_a_width_between_heads_is_refused():
    with pytest.raises(UserError, match="a width is 40; it must be a multiple of 16"):
        call("coordinates", "--widths", "40")

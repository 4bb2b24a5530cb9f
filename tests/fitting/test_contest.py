"""A contest of laws on losses whose law is known."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.fitting.compare import fit_each
from moelaws.fitting.contest import contest
from moelaws.fitting.cores import using_cores
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Contest, Fit


@pytest.fixture(scope="module")
def table():
    """Losses of Chinchilla's law with noise; every model saw the same tokens but one batch."""
    law = laws.get("chinchilla")
    rng = np.random.default_rng(0)
    N = np.repeat(np.geomspace(1e6, 1e9, 8), 4)
    D = np.full(len(N), 1e10)
    D[3] *= 1.004  # one run ended a few steps later
    L = law.predict(law.published, {"N": N, "D": D}) * np.exp(0.003 * rng.standard_normal(len(N)))
    return pd.DataFrame({"N": N, "D": D, "L": L})


def entry(*splits, **changed):
    given = {
        "name": "laws",
        "laws": ["clark.dense", "chinchilla", "sparsity.loss", "wang.loss"],
        "protocol": {"objective": "squared", "sample": 500},
        "bootstrap": 30,
        "splits": [{"name": f"s{i}", "use": "x", **split} for i, split in enumerate(splits)],
    }
    return Contest.model_validate(given | changed)


@pytest.fixture(scope="module")
def judged(table):
    return contest(entry({"largest": "N"}, {"rollout": "N"}, {"holdout": "N > 3e8"}), table)


def test_the_law_behind_the_losses_wins_in_its_reduced_form(judged):
    best, second = judged[0]["laws"]
    assert best["law"] == "chinchilla:reduced"
    assert best["equation"] == "L = A/N^alpha + E"
    assert best["parameters"] == 3
    assert best["rmse"] < 0.02
    assert second["law"] == "clark.dense"
    assert second["rmse_excess_interval"][0] > 0
    assert best["first"] == 1.0


def test_a_roll_out_goes_down_as_far_as_the_laws_can_be_fitted(judged):
    steps = judged[1]["steps"]
    assert [step["judged"] for step in steps] == [4 * i for i in range(1, len(steps) + 1)]
    # Three parameters take three sizes.
    assert steps[-1]["fitted"] == 12
    assert {law["n"] for law in judged[1]["laws"]} == {sum(step["judged"] for step in steps)}


def test_a_law_that_the_table_cannot_feed_is_named_and_the_others_go_on(judged):
    for split in judged:
        assert set(split["refused"]) == {"sparsity.loss", "wang.loss"}
        assert "no column 'S' for S of sparsity.loss" in split["refused"]["sparsity.loss"]


def test_each_law_may_map_a_variable_its_own_way(table):
    renamed = table.assign(M=table["N"]).drop(columns="N")
    mappings = {"chinchilla": {"N": "M"}}
    (split,) = contest(entry({"largest": "M"}, mappings=mappings), renamed)
    assert [law["law"] for law in split["laws"]] == ["chinchilla:reduced"]
    assert "clark.dense" in split["refused"]


def test_rows_are_chosen_by_the_tables_columns_and_not_by_what_a_law_calls_so(table):
    """A law whose N is another column still predicts the rows that the others do."""
    renamed = table.assign(M=3 * table["N"])
    mappings = {"chinchilla": {"N": "M"}}
    for split in ({"holdout": "N > 3e8"}, {"largest": "N"}):
        (judged,) = contest(entry(split, mappings=mappings), renamed)
        assert {law["law"] for law in judged["laws"]} == {"chinchilla:reduced", "clark.dense"}
        assert {law["n"] for law in judged["laws"]} == {judged["steps"][0]["judged"]}


def test_rows_that_err_together_are_drawn_together(table, judged):
    splits = ({"largest": "N"}, {"rollout": "N"})
    largest, roll_out = contest(entry(*splits, resample_by="N"), table)
    assert largest["blocks"] == 1
    assert roll_out["blocks"] == len(roll_out["steps"]) == len(judged[1]["steps"])
    assert {split["blocks"] for split in judged} == {0}
    for one, other in zip((largest, roll_out), judged, strict=False):
        best, same = one["laws"][0], other["laws"][0]
        assert best["rmse"] == same["rmse"]
        assert best["rmse_interval"] != same["rmse_interval"]


def test_rows_without_a_value_are_neither_fitted_nor_judged(table):
    holes = table.assign(size=table["N"].where(table.index % 4 > 0))
    (judged,) = contest(entry({"rollout": "size"}), holes)
    assert (judged["steps"][0]["fitted"], judged["steps"][0]["judged"]) == (21, 3)


def test_on_two_cores_short_fits_go_a_law_a_core_and_say_the_same(table):
    short = {"protocol": {"objective": "squared", "sample": 20}, "bootstrap": 5}
    laws = {"laws": ["clark.dense", "clark.routing", "chinchilla", "wang.loss"]}
    asked, stages, found = entry({"largest": "N"}, {"rollout": "N"}, **short, **laws), [], []
    for count in (1, 2):
        with using_cores(count):
            found.append(contest(asked, table, progress=lambda *told: stages.append(told)))
    assert found[0] == found[1]
    assert found[0][0]["refused"]
    assert ("s0: laws", 4, 4) in stages


@pytest.mark.parametrize(
    ("split", "changed", "reason"),
    [
        ({"largest": "D"}, {"rows": "D < 1.001e10"}, "all of its 31 rows have one D"),
        ({"holdout": "N > 1e12"}, {}, "holdout 'N > 1e12' selects none of the 32 rows"),
        ({"holdout": "N > 0"}, {}, "holdout 'N > 0' selects all of the 32 rows"),
    ],
)
def test_a_split_that_keeps_nothing_says_so_and_the_others_go_on(table, split, changed, reason):
    wrong, right = contest(entry(split, {"holdout": "N > 3e8"}, **changed), table)
    assert (wrong["steps"], wrong["laws"]) == ([], [])
    assert all(reason in text for text in wrong["refused"].values())
    assert len(wrong["refused"]) == 4
    assert right["laws"][0]["law"] == "chinchilla:reduced"


@pytest.mark.parametrize(
    ("split", "changed"),
    [
        ({"largest": "Q"}, {}),
        ({"holdout": "Q > 1"}, {}),
        ({"holdout": "N > 3e8", "rows": "Q > 1"}, {}),
        ({"holdout": "N > 3e8"}, {"rows": "Q > 1"}),
    ],
)
def test_a_split_of_a_column_that_is_not_there_is_a_mistake(table, split, changed):
    with pytest.raises(UserError, match="no column 'Q'"):
        contest(entry(split, **changed), table)


@pytest.mark.parametrize(("x", "wrong"), [(800.0, "inf"), (500.0, r"[0-9.]+e\+216")])
def test_a_law_of_infinite_error_is_refused_and_the_others_go_on(parabola, x, wrong):
    """Beside a prediction that overflows there is one whose square does."""
    own = parabola.features | {"p1": lambda c: np.exp(c["x"])}
    explosive = dataclasses.replace(parabola, id="explosive", features=own)
    rng = np.random.default_rng(0)
    known = np.linspace(0, 3, 12)
    table = pd.DataFrame({"x": [*known, x], "y": [*known + 0.1 * rng.standard_normal(12), 5.0]})
    spec = Fit(name="f", law="explosive,parabola", mapping={}, holdout="x > 10", bootstrap=5)
    fitted, refused = fit_each([explosive, parabola], table, spec)
    assert [one.ref for one in fitted] == ["parabola"]
    message = rf"its error on the held-out rows is infinite: it predicts -?{wrong} for one of them"
    assert re.fullmatch(message, refused["explosive"])


def test_a_law_that_is_named_twice_is_refused(table):
    with pytest.raises(UserError, match="one is named twice"):
        contest(entry({"holdout": "N > 3e8"}, laws=["chinchilla", "chinchilla"]), table)

"""A comparison of laws of which not every one can be fitted to the table."""

import json

import numpy as np
import pandas as pd
import pytest

from command_line import call
from moelaws import laws
from moelaws.spec.errors import UserError


@pytest.fixture
def table(tmp_path):
    """Losses of dense models that follow chinchilla's form: they have no number of experts."""
    points = [(n * 1e6, d * 1e7) for n in (1, 3, 9, 27) for d in (2, 5, 20, 60)]
    lines = [f"{N},{D},{1.7 + 400 / N**0.35 + 800 / D**0.37}" for N, D in points]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["N,D,L", *lines]) + "\n")
    return path


def compare(table, refs, *options):
    return call("compare", table, "--laws", refs, "--bootstrap", "2", *options)


@pytest.mark.parametrize("holdout", [[], ["--holdout", "D>5e8"]])
def test_a_law_that_is_refused_leaves_the_others(table, holdout):
    done = compare(table, "wang.loss,chinchilla,sparsity.loss", *holdout, "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert [law["law"] for law in data["laws"]] == ["chinchilla"]
    assert data["laws"][0]["aic_excess"] == 0
    assert list(data["refused"]) == ["wang.loss", "sparsity.loss"]
    assert "no column 'E' for E of wang.loss" in data["refused"]["wang.loss"]
    assert f"refused: wang.loss: {data['refused']['wang.loss']}\n" in done.stderr


def test_where_every_law_is_refused_there_is_nothing_to_compare(table):
    with pytest.raises(UserError, match=r"no law can be fitted; wang.loss: no column 'E'.*") as no:
        compare(table, "wang.loss,sparsity.loss")
    assert "sparsity.loss: no column 'S'" in str(no.value)
    assert str(no.value).count("\n") == 0


def test_a_law_whose_prediction_of_the_held_out_rows_is_open_is_named(tmp_path):
    """Dense runs alone say nothing of experts: whatever exponent these have, it fits."""
    law = laws.get("clark.routing")
    points = [(n * 1e7, E) for n in (1, 2, 4, 9, 20, 45, 100) for E in (1, 2, 4, 8, 32)]
    N, E = np.array(points).T
    noise = np.exp(0.003 * np.random.default_rng(0).standard_normal(len(points)))
    L = law.predict(law.published, {"N_active": N, "E": E}) * noise
    path = tmp_path / "routed.csv"
    pd.DataFrame({"N_active": N, "E": E, "C": 1e3 * N**2, "L": L}).to_csv(path, index=False)
    given = ("--map", "N=N_active", "--map", "D=C", "--holdout", "E>1", "--json")
    data = json.loads(compare(path, "clark.routing,wang.loss,leverage.curve", *given).stdout)
    reason = data["refused"]["clark.routing"]
    assert reason == (
        "the 7 rows cannot determine a, b, c, d, E_start and E_max of clark.routing: all have "
        "E = 1; add rows that vary"
    )
    assert "cannot determine" in data["refused"]["wang.loss"]
    assert [law["law"] for law in data["laws"]] == ["leverage.curve"]

"""A comparison of laws of which not every one can be fitted to the table."""

import json

import pytest
from click.testing import CliRunner

from moelaws.cli import cli
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
    words = ["compare", str(table), "--laws", refs, "--bootstrap", "2", *options]
    return CliRunner().invoke(cli, words, catch_exceptions=False)


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


def test_where_no_law_is_refused_all_are_there(table):
    """Not even one that no table could determine: of losses without noise, E the same as N."""
    done = compare(table, "wang.loss,chinchilla", "--map", "E=N", "--json")
    data = json.loads(done.stdout)
    assert {law["law"] for law in data["laws"]} == {"chinchilla", "wang.loss"}
    assert data["refused"] == {}
    assert "refused" not in done.stderr


def test_where_every_law_is_refused_there_is_nothing_to_compare(table):
    with pytest.raises(UserError, match=r"no law can be fitted; wang.loss: no column 'E'.*") as no:
        compare(table, "wang.loss,sparsity.loss")
    assert "sparsity.loss: no column 'S'" in str(no.value)
    assert str(no.value).count("\n") == 0

"""The report's files: what is written is what is read, and a group is chosen by its value."""

import json
import re
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fitting_case import entry, fitted
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws import laws
from moelaws.cli import cli
from moelaws.files.atomic import read_json, write_json
from moelaws.fitting.report import draws_path, group_draws, read_draws, read_fit, write_fit
from moelaws.fitting.rows import selected_rows
from moelaws.spec.errors import UserError

LAW = laws.fittable("chinchilla")


@pytest.fixture(scope="module")
def split(simulated):
    law = laws.get("sparsity.isoflop")
    return fitted(law, simulated(), split_by="C", holdout="S >= 0.98", bootstrap=20)


def test_round_trip(split, tmp_path):
    path = tmp_path / "fits" / "surface.json"
    write_fit(split, path)
    assert read_fit(path) == split
    again = tmp_path / "again.json"
    write_fit(read_fit(path), again)
    assert again.read_bytes() == path.read_bytes()
    pd.testing.assert_frame_equal(read_draws(path), split.draws)
    assert read_draws(path).columns.tolist()[:2] == ["C", "draw"]
    assert set(path.parent.iterdir()) == {path, draws_path(path)}


def test_all_that_a_fit_can_report_survives_its_file(dense, tmp_path):
    """Weights, blocks, a profile, a roll-out, several optima: JSON has no infinity and no NaN."""
    table = dense(sizes=9, tokens=8).assign(se=0.02, budget=np.repeat([1.0, 2.0, 3.0], 24))
    fields = {"weights": "se", "resample_by": "budget", "profile": ("beta",), "rollout": "budget"}
    report = fitted(LAW, table, **fields, bootstrap=10, protocol={"sample": 40})
    write_fit(report, tmp_path / "all.json")
    text = (tmp_path / "all.json").read_text()
    written = json.loads(text, parse_constant=pytest.fail)
    assert written.pop("seal")
    assert written.pop("made_of") == {}
    assert written == report.to_json() | {"draws_digest": written["draws_digest"]}
    assert read_fit(tmp_path / "all.json") == report
    (group,) = report.parts
    assert list(group.profile) == ["beta"]
    assert [entry.below for entry in group.rollout] == [1.0, 2.0]
    assert (
        group.intervals
        == "percentile bootstrap over blocks of rows by budget, widened for 3 blocks"
    )
    assert set(group.delta_method) == set(LAW.names)
    assert group.support.variables == ["N", "D"]
    assert report.table["columns"] == ["D", "L", "N", "budget", "se"]


def test_the_keys_of_diagnostics_are_those_of_the_law_and_objective(split, dense):
    """Scripts read them: a linear law has subsamples, another its starts, a likelihood sigma."""
    protocol = {"objective": "huber_scale", "sample": 20}
    likely = fitted(LAW, dense(sizes=6, tokens=5), bootstrap=2, protocol=protocol)
    first = ["seed", "objective", "delta", "newton_decrease", "condition_number", "at_bounds"]
    own = {"subsamples": split.parts[0], "sigma starts near_equivalent": likely.parts[0]}
    for keys, group in own.items():
        keys = [*first, *keys.split(), "draws", "unidentified"]
        assert list(group.to_json()["diagnostics"]) == keys


def test_reading_a_fit_needs_nothing_that_makes_one():
    """So an edit of the engine redraws no figure that only reads fits (read by its imports)."""
    code = "import moelaws.fitting.report, sys\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("moelaws.fitting.")}
    assert loaded == {f"moelaws.fitting.{name}" for name in ("diagnostics", "report")}
    assert not {"numpy", "pandas", "scipy"} & set(done.stdout.split())


def test_groups_of_tiny_values_are_kept_apart(dense, tmp_path):
    table = dense().assign(lr=np.tile([1e-9, 2e-9], 90))
    fields = {"split_by": "lr", "bootstrap": 5, "protocol": {"sample": 20}}
    report = fitted(LAW, table, **fields)
    write_fit(report, tmp_path / "f.json")
    back = read_fit(tmp_path / "f.json")
    for group in report.parts:
        assert group_draws(tmp_path / "f.json", back, group).shape == (5, 5)
        rows, _ = selected_rows(table, LAW, entry(LAW, **fields), group.where)
        assert rows.sum() == 90


def test_group_by_value(split):
    assert split.group({"C": 1e21, "N": 3.0}).where == {"C": 1e21}
    with pytest.raises(UserError, match="give C=VALUE, one of 3e"):
        split.group({})
    with pytest.raises(UserError, match=r"C is 5e\+20; it must be one of"):
        split.group({"C": 5e20})


def test_draws_of_another_fit_are_refused(split, tmp_path):
    path = tmp_path / "surface.json"
    write_fit(split, path)
    back = read_fit(path)
    split.draws.iloc[:-1].to_parquet(draws_path(path), index=False)
    with pytest.raises(UserError, match="the draws of another fit"):
        group_draws(path, back, back.parts[0])


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"law": "sparsity.loss"}')
    with pytest.raises(UserError, match=r"other\.json: this is not a fit report"):
        read_fit(tmp_path / "other.json")
    with pytest.raises(UserError, match="no such file"):
        read_fit(tmp_path / "none.json")
    (tmp_path / "cut.bootstrap.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="no readable Parquet file"):
        read_draws(tmp_path / "cut.json")


@pytest.fixture(scope="module")
def written(dense, tmp_path_factory):
    """A report with starts, a profile, a hull and draws."""
    path = tmp_path_factory.mktemp("written") / "fit.json"
    report = fitted(LAW, dense(6, 5), bootstrap=5, protocol={"sample": 10})
    write_fit(report, path)
    return path


def evaluated(path):
    words = ["eval", "chinchilla", "N=1e9", "D=2e10", "--params", str(path)]
    return CliRunner().invoke(cli, words, catch_exceptions=False).exit_code


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("params", "A", "estimate"), None, "params.A.estimate: Input should be a valid number"),
        (("params", "A", "estimate"), "big", "params.A.estimate: Input should be a valid number"),
        (("params", "A"), 5, "params.A: Input should be an object"),
        (("params",), {}, "params has none; those of chinchilla are A, "),
        (("law",), [1], "law: Input should be a valid string"),
        (("level",), 5, "level: Input should be less than 1"),
        (("hull",), 5, "support: Input should be an object"),
        (("hull", "ranges"), {}, "support: ranges, variables, normals and offsets do not fit toge"),
        (("hull", "normals"), [[1, "x"]], "support.normals.0.1: it is not a number"),
        (("hull", "normals"), [[1.0]], "do not fit together"),
        (("hull", "offsets"), [None], "do not fit together"),
        (("hull", "ranges"), {"N": [1, 2], "D": [1, 2], "X": [1, 2]}, "hull.ranges has N, D, X; "),
        (("hull", "variables"), ["X"], "do not fit together"),
        (("residuals", "quantiles"), [[]], "residuals.quantiles.0: it is not a number"),
        (("residuals", "spread"), 1, "residuals.spread: Unexpected keyword"),
        (("diagnostics", "draws"), {"requested": 5}, "diagnostics.draws.used: Field required"),
        (("split_by",), "C", "the key 'parts' is missing"),
    ],
)
def test_a_broken_report_is_refused_in_a_line(keys, value, message, written, tmp_path):
    report = read_json(written)
    target = report
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    write_json(tmp_path / "fit.json", report)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        evaluated(tmp_path / "fit.json")
    assert str(caught.value).startswith(str(tmp_path / "fit.json"))


@settings(max_examples=60)
@given(data=st.data())
def test_whatever_a_report_holds_is_read_or_refused(data, written):
    """Never a traceback: a user's error, or a prediction."""
    report = read_json(written)
    target, key = report, data.draw(st.sampled_from(sorted(report)))
    while isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
        target = target[key]
        keys = sorted(target) if isinstance(target, dict) else range(len(target))
        key = data.draw(st.sampled_from(keys))
    target[key] = data.draw(st.sampled_from([None, True, -1, 0.5, "x", [], {}, [1], {"x": 1}]))
    broken = written.with_name("broken.json")
    write_json(broken, report)
    draws_path(broken).write_bytes(draws_path(written).read_bytes())
    with suppress(UserError):
        assert evaluated(broken) == 0

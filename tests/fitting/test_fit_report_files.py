"""A fit's report and its files, and moelaws fit and eval as a user types them."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from fitting_case import entry, fitted, fitted_group
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import call, printed
from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.cli.fit import fit_entry
from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json
from moelaws.fitting.report import draws_path, group_draws, read_draws, read_fit, write_fit
from moelaws.fitting.variables import with_size
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from nested import changed
from repository import REPOSITORY

LAW = laws.fittable("chinchilla")


@pytest.fixture(scope="module")
def split(simulated):
    law = laws.get("sparsity.isoflop")
    return fitted(law, simulated(), split_by="C", holdout="S >= 0.98", bootstrap=20)


def test_all_that_a_fit_can_report_survives_its_file(dense, tmp_path):
    """Weights, blocks, a profile, several optima: JSON has no infinity and no NaN."""
    table = dense(sizes=9, tokens=8).assign(se=0.02, budget=np.repeat([1.0, 2.0, 3.0], 24))
    fields = {"weights": "se", "resample_by": "budget", "profile": ("beta",)}
    report = fitted(LAW, table, **fields, bootstrap=10, protocol={"sample": 40})
    write_fit(report, tmp_path / "all.json")
    text = (tmp_path / "all.json").read_text()
    written = json.loads(text, parse_constant=pytest.fail)
    assert written.pop("seal")
    assert written.pop("made_of") == {}
    assert written == report.to_json() | {"draws_digest": written["draws_digest"]}
    back = read_fit(tmp_path / "all.json")
    assert back == report
    drawn = read_draws(tmp_path / "all.json", back).to_pandas()
    pd.testing.assert_frame_equal(drawn, report.draws)
    (group,) = report.parts
    assert list(group.profile) == ["beta"]
    assert group.intervals.endswith("over blocks of rows by budget, widened for 3 blocks")
    assert set(group.delta_method) == set(LAW.names)
    assert group.hull.variables == ["N", "D"]
    assert report.table["columns"] == ["D", "L", "N", "budget", "se"]


def test_reading_a_fit_needs_nothing_that_makes_one():
    """So an edit of the engine redraws no figure that only reads fits (read by its imports)."""
    code = "import moelaws.fitting.report, sys\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("moelaws.fitting.")}
    assert loaded == {f"moelaws.fitting.{name}" for name in ("diagnostics", "report")}
    assert not {"numpy", "pandas", "scipy"} & set(done.stdout.split())


def test_draws_of_another_fit_are_refused(split, tmp_path):
    path = tmp_path / "surface.json"
    write_fit(split, path)
    back = read_fit(path)
    split.draws.iloc[:-1].to_parquet(draws_path(path), index=False)
    with pytest.raises(UserError, match="the draws of another fit"):
        group_draws(path, back, back.parts[0])
    with pytest.raises(UserError, match="the draws of another fit"):
        FittedInputs(frame=None, fits={"surface": path}).draws("surface")


def test_foreign_files_are_refused(split, tmp_path):
    (tmp_path / "other.json").write_text('{"law": "sparsity.loss"}')
    with pytest.raises(UserError, match=r"other\.json: this is not a fit report"):
        read_fit(tmp_path / "other.json")
    with pytest.raises(UserError, match="no such file"):
        read_fit(tmp_path / "none.json")
    (tmp_path / "cut.bootstrap.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="no readable Parquet file"):
        read_draws(tmp_path / "cut.json", split)


@pytest.fixture(scope="module")
def written(dense, tmp_path_factory):
    """A report with starts, a profile, a hull and draws."""
    path = tmp_path_factory.mktemp("written") / "fit.json"
    report = fitted(LAW, dense(6, 5), bootstrap=5, protocol={"sample": 10})
    write_fit(report, path)
    return path


def evaluated(path):
    return call("eval", "chinchilla", "N=1e9", "D=2e10", "--params", path).exit_code


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("params.A.estimate", None, "params.A.estimate: Input should be a valid number"),
        ("params", {}, "params has none; those of chinchilla are A, "),
        ("hull.ranges", {}, "hull: ranges, variables, normals and offsets do not fit"),
        ("split_by", "C", "parts: Field required"),
    ],
)
def test_a_broken_report_is_refused_in_a_line(place, value, message, written, tmp_path):
    write_json(tmp_path / "fit.json", changed(read_json(written), place, value))
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        evaluated(tmp_path / "fit.json")
    assert str(caught.value).startswith(str(tmp_path / "fit.json"))


@settings(max_examples=30)
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


def data_of(*words):
    return json.loads(printed(*words, "--json"))


def test_fit_then_predict_from_it(simulated, tmp_path):
    table = tmp_path / "runs.csv"
    simulated().rename(columns={"L": "loss", "N": "N_total"}).to_csv(table, index=False)
    out = tmp_path / "surface.json"
    data = data_of(
        *("fit", table, "--law", "sparsity.isoflop", "--map", "L=loss", "--map", "N=N_total"),
        *("--split-by", "C", "--bootstrap", 20, "--out", out),
    )
    assert [group["where"]["C"] for group in data["parts"]] == [3e19, 1.7e20, 1e21]
    written = read_json(out)
    assert len(written.pop("draws_digest")) == 64
    assert written.pop("made_of")["files"] == {str(table): seal.digest(table)}
    assert written == data
    data = data_of("eval", "sparsity.isoflop", "N=2e9", "S=0.5", "C=1e21", "--params", out)
    group = read_fit(out).group({"C": 1e21})
    assert data["params"] == group.estimates()
    assert data["inputs"] == {"N": 2e9, "S": 0.5, "C": 1e21}
    assert data["unit"] == "nats/token"
    assert 2 < data["value"] < 3


def test_a_fit_that_is_split_by_words_predicts_for_a_word(simulated, tmp_path):
    table, out = tmp_path / "runs.csv", tmp_path / "surface.json"
    frame = simulated(sizes=4)
    better = frame.assign(L=0.9 * frame["L"], data="pile")
    pd.concat([frame.assign(data="c4"), better]).to_csv(table, index=False)
    printed(
        *("fit", table, "--law", "sparsity.isoflop", "--rows", "C < 1e20", "--split-by", "data"),
        *("--bootstrap", 2, "--out", out),
    )
    at = ("eval", "sparsity.isoflop", "N=2e9", "S=0.5", "--params", out)
    c4, pile = (data_of(*at, f"data={x}")["value"] for x in ("c4", "pile"))
    assert pile == pytest.approx(0.9 * c4)
    for value, message in (
        (["data=c5"], "data is c5; it must be one of c4, pile"),
        (["data=2"], "data is 2; it must be one of c4, pile"),
        ([], "is split by data: give data=VALUE, one of c4, pile"),
    ):
        with pytest.raises(UserError, match=message):
            printed(*at, *value)


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_file_of_held_out_rows_is_what_an_expression_would_hold_out(dense, tmp_path, command):
    table = dense(sizes=6, tokens=5)
    is_held = table["N"] > 3e9
    for name, rows in (("all", table), ("fitted", table[~is_held]), ("held", table[is_held])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    laws = ["--law", "chinchilla"] if command == "fit" else ["--laws", "chinchilla,clark.dense"]
    options = (*laws, "--bootstrap", 2, "--holdout")
    one = data_of(command, tmp_path / "all.csv", *options, "N > 3e9")
    two = data_of(command, tmp_path / "fitted.csv", *options, tmp_path / "held.csv")
    of_fit = [data if command == "fit" else data["laws"][0] for data in (one, two)]
    assert of_fit[0]["holdout"]["n"] == is_held.sum()
    assert of_fit[0]["holdout"] == of_fit[1]["holdout"]
    assert of_fit[0]["params"] == of_fit[1]["params"]


def test_options_reach_the_fit(dense, tmp_path):
    table = tmp_path / "runs.csv"
    dense(sizes=5, tokens=4).assign(se=0.01, run=range(20)).to_csv(table, index=False)
    options = (
        *("--objective", "absolute", "--sample", 20, "--weights", "se", "--resample-by", "run"),
        *("--level", 0.5, "--profile", "beta", "--bootstrap", 5, "--seed", 3),
    )
    out = tmp_path / "fit.json"
    text = printed("fit", table, "--law", "chinchilla", *options, "--out", out)
    data = json.loads(out.read_text())
    assert data["diagnostics"]["objective"] == "absolute"
    assert data["diagnostics"]["starts"]["run"] == 20
    assert data["diagnostics"]["seed"] == 3
    assert data["diagnostics"]["draws"]["requested"] == 5
    assert data["intervals"].endswith("over blocks of rows by run, widened for 20 blocks")
    assert data["level"] == 0.5
    assert list(data["profile"]) == ["beta"]
    for shown in ("profile likelihood", "20 of the grid's 4,500 starts", "low (50 %)"):
        assert shown in text


def test_a_loss_in_bits_a_byte_stays_in_them_where_its_unit_says_so(dense, tmp_path):
    frame = dense().rename(columns={"L": "bpb"}).assign(bpb=lambda rows: rows["bpb"] / 3)
    units = {"N": "parameters", "D": "tokens", "bpb": "bits/byte"}
    columns = [Column(name, "float", "", units[name]) for name in ("N", "D", "bpb")]
    table, out = tmp_path / "runs.parquet", tmp_path / "fit.json"
    write_table(frame[list(units)].astype(float), columns, table, {})
    words = ("fit", table, "--law", "chinchilla", "--map", "L=bpb", "--bootstrap", 1)
    with pytest.raises(UserError, match=r"a fit stays in bits a byte with --unit L=bits/byte"):
        printed(*words)
    text = printed(*words, "--unit", "L=bits/byte", "--out", out)
    assert "L and what is fitted of it are in bits/byte, as column bpb is" in text
    theirs = fitted_group(LAW, dense(), bootstrap=1).estimates()
    ours = read_fit(out).parts[0].estimates()
    for name, factor in {"A": 3, "B": 3, "E": 3, "alpha": 1, "beta": 1}.items():
        assert factor * ours[name] == pytest.approx(theirs[name], rel=1e-3)
    data = data_of("eval", "chinchilla", "N=1e9", "D=2e10", "--params", out)
    assert data["unit"] == "bits/byte"
    grid = ("--study", "leverage", "--params", out)
    with pytest.raises(UserError, match="its losses are in bits/byte, and tables in nats/token"):
        printed("simulate", "chinchilla", *grid)
    with pytest.raises(UserError, match="its losses are in bits/byte, and plans are compared in"):
        printed("advise", "--compute", "1e21", "--fits", out)


def test_a_size_that_a_table_of_others_lacks_follows_from_compute_and_tokens(dense, tmp_path):
    table = dense().assign(C=lambda rows: 6 * rows["N"] * rows["D"] / 8.64e19).drop(columns="N")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.assign(S=0.75).to_csv(tmp_path / "sparse.csv", index=False)
    words = ("--law", "chinchilla", "--sample", 5, "--bootstrap", 1, "--unit", "C=PF-days")
    sizes = {"t.csv": "C / (6 D) (dense: no S, nor E and k)", "sparse.csv": "C / (6 D (1 - S))"}
    for name, size in sizes.items():
        text = printed("fit", tmp_path / name, *words, "--out", tmp_path / f"{name}.json")
        assert f"  N = {size}\n" in text
    dense_fit, sparse_fit = (read_json(tmp_path / f"{name}.json")["params"] for name in sizes)
    factor = 4 ** dense_fit["alpha"]["estimate"]
    own = sparse_fit["A"]["estimate"]
    assert own == pytest.approx(factor * dense_fit["A"]["estimate"], rel=0.01)
    entry = {"name": "f", "law": "chinchilla", "mapping": {"L": "L"}, "units": {"C": "PF-days"}}
    with pytest.raises(UserError, match="no column 'N' for N of chinchilla"):
        fit_entry(parse(Fit, entry, "x"), tmp_path / "t.csv", None)
    both = ("compare", tmp_path / "t.csv", "--laws", "chinchilla,wang.loss", *words[4:])
    assert list(data_of(*both)["refused"]) == ["wang.loss"]


def test_one_refusal_names_all_columns_and_units_and_the_call_that_has_them(ended, tmp_path):
    rows = ["params,tokens,val_loss", *(f"{n},{d},3.{n}" for n in range(1, 9) for d in (2, 5))]
    lines = [f"| {row.replace(',', ' | ')} |" for row in (rows[0], "---,---,---", *rows[1:])]
    few = ["# Few", "", "| a |", "|---|", "| 1 |", "", "## All", ""]
    (tmp_path / "page.md").write_text("\n".join([*few, *lines, ""]))
    words = ("fit", tmp_path / "page.md#All", "--law", "chinchilla", "--intervals", "none")
    code, _, error = ended(*words, "--map", "N=size", "--sample", 2)
    assert code == 2
    assert "no column 'size' for N, none 'D' for D, none 'L' for L of chinchilla; there" in error
    call = shlex.split(error.partition("if it is so: moelaws ")[2])
    assert call[-10:] == [
        *("--map", "N=params", "--map", "D=tokens", "--map", "L=val_loss"),
        *("--unit", "N=M", "--unit", "D=B"),
    ]
    code, _, error = ended(*call[:-4])
    assert "for N is at most 8 parameters" in error
    assert "for D is at most 5 tokens" in error
    assert ended(*call, "--out", tmp_path / "f.json")[0] == 0


def test_n_of_a_law_is_its_own_column_of_a_studys_table():
    evidence = REPOSITORY / "docs/evidence/sparsity.parquet"
    table, law = pd.read_parquet(evidence), laws.fittable("sparsity.loss")
    assert with_size(law, table, entry(law)).mapping == {"N": "N_total"}
    with pytest.raises(UserError, match="may be either here: say --map N=N_total or --map N=N_act"):
        printed("fit", evidence, "--law", "chinchilla")
    dense = table.query("S == 0")  # there both columns are one
    assert with_size(LAW, dense, entry(LAW)).mapping == {"N": "N_total"}


def test_numbers_are_written_as_people_write_them():
    data = data_of("eval", "sparsity.loss", "N=1B", "D=20B", "S=98%")
    assert data["inputs"] == {"N": 1e9, "D": 2e10, "S": 0.98}
    assert data == data_of("eval", "sparsity.loss", "N=1,000M", "D=2e10", "S=49/50")

"""moelaws fit, eval and laws as a user types them."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.fitting.report import read_fit
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from repository import REPOSITORY


def _run(*arguments):
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_fit_then_predict_from_it(simulated, tmp_path):
    table = tmp_path / "runs.csv"
    simulated().rename(columns={"L": "loss", "N": "N_total"}).to_csv(table, index=False)
    out = tmp_path / "surface.json"
    result = _run(
        *("fit", table, "--law", "sparsity.isoflop", "--map", "L=loss", "--map", "N=N_total"),
        *("--split-by", "C", "--bootstrap", 20, "--out", out, "--json"),
    )
    data = json.loads(result.stdout)
    assert [group["where"]["C"] for group in data["parts"]] == [3e19, 1.7e20, 1e21]
    written = read_json(out)
    assert len(written.pop("draws_digest")) == 64
    assert written.pop("made_of")["files"] == {str(table): seal.digest(table)}
    assert written == data
    at = ("N=2e9", "S=0.5", "C=1e21")
    result = _run("eval", "sparsity.isoflop", *at, "--params", out, "--json")
    data = json.loads(result.stdout)
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
    _run(
        *("fit", table, "--law", "sparsity.isoflop", "--rows", "C < 1e20", "--split-by", "data"),
        *("--bootstrap", 2, "--out", out),
    )
    at = ("eval", "sparsity.isoflop", "N=2e9", "S=0.5", "--params", out, "--json")
    c4, pile = (json.loads(_run(*at, f"data={x}").stdout)["value"] for x in ("c4", "pile"))
    assert pile == pytest.approx(0.9 * c4)
    for given, message in (
        (["data=c5"], "data is c5; it must be one of c4, pile"),
        (["data=2"], "data is 2; it must be one of c4, pile"),
        ([], "is split by data: give data=VALUE, one of c4, pile"),
    ):
        with pytest.raises(UserError, match=message):
            _run(*at, *given)


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_file_of_held_out_rows_is_what_an_expression_would_hold_out(dense, tmp_path, command):
    table = dense(sizes=6, tokens=5)
    is_held = table["N"] > 3e9
    for name, rows in (("all", table), ("fitted", table[~is_held]), ("held", table[is_held])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    laws = ["--law", "chinchilla"] if command == "fit" else ["--laws", "chinchilla,clark.dense"]
    options = (*laws, "--bootstrap", 2, "--json", "--holdout")
    one = json.loads(_run(command, tmp_path / "all.csv", *options, "N > 3e9").stdout)
    two = json.loads(_run(command, tmp_path / "fitted.csv", *options, tmp_path / "held.csv").stdout)
    of_fit = [data if command == "fit" else data["laws"][0] for data in (one, two)]
    assert of_fit[0]["holdout"]["n"] == is_held.sum()
    assert of_fit[0]["holdout"] == of_fit[1]["holdout"]
    assert of_fit[0]["params"] == of_fit[1]["params"]


def test_a_file_of_held_out_rows_in_another_unit_is_refused(dense, tmp_path):
    table = dense(sizes=6, tokens=5)
    table.to_csv(tmp_path / "runs.csv", index=False)
    columns = [Column(name, "float", "1", "") for name in table]
    write_table(table, columns, tmp_path / "held.parquet")
    arguments = ("--law", "chinchilla", "--holdout", tmp_path / "held.parquet")
    with pytest.raises(UserError, match="its column N is in another unit than that of"):
        _run("fit", tmp_path / "runs.csv", *arguments)


def test_options_reach_the_fit(dense, tmp_path):
    table = tmp_path / "runs.csv"
    frame = dense(sizes=9, tokens=8)
    frame.assign(C=6 * frame["N"] * frame["D"], se=0.01, run=range(72)).to_csv(table, index=False)
    options = (
        *("--objective", "absolute", "--sample", 50, "--weights", "se", "--resample-by", "run"),
        *("--level", 0.5, "--rollout", "N", "--profile", "beta", "--bootstrap", 10, "--seed", 3),
    )
    out = tmp_path / "fit.json"
    text = _run("fit", table, "--law", "chinchilla", *options, "--out", out).stdout
    data = json.loads(out.read_text())
    assert data["diagnostics"]["objective"] == "absolute"
    assert data["diagnostics"]["starts"]["run"] == 50
    assert data["diagnostics"]["seed"] == 3
    assert data["diagnostics"]["draws"] == {"requested": 10, "used": 10}
    assert (
        data["intervals"]
        == "percentile bootstrap over blocks of rows by run, widened for 72 blocks"
    )
    assert data["level"] == 0.5
    assert len(data["rollout"]) == 8
    assert data["profile"]["beta"]["low"] < data["profile"]["beta"]["high"]
    for shown in ("profile likelihood", "N <=", "50 of the grid's 4,500 starts", "low (50 %)"):
        assert shown in text


def test_a_loss_in_bits_a_byte_stays_in_them_where_its_unit_says_so(dense, tmp_path):
    frame = dense().rename(columns={"L": "bpb"}).assign(bpb=lambda rows: rows["bpb"] / 3)
    units = {"N": "parameters", "D": "tokens", "bpb": "bits/byte"}
    columns = [Column(name, "float", units[name], "") for name in ("N", "D", "bpb")]
    table, out = tmp_path / "runs.parquet", tmp_path / "fit.json"
    write_table(frame[list(units)].astype(float), columns, table, {})
    words = ("fit", table, "--law", "chinchilla", "--map", "L=bpb", "--bootstrap", 1)
    with pytest.raises(UserError, match=r"a fit stays in bits a byte with --unit L=bits/byte"):
        _run(*words)
    text = _run(*words, "--unit", "L=bits/byte", "--out", out).stdout
    assert "L and what is fitted of it are in bits/byte, as column bpb is" in text
    nats = dense()
    nats.to_csv(tmp_path / "nats.csv", index=False)
    in_nats = _run("fit", tmp_path / "nats.csv", "--law", "chinchilla", "--bootstrap", 1, "--json")
    theirs = json.loads(in_nats.stdout)["params"]
    ours = read_json(out)["params"]
    for name, factor in {"A": 3, "B": 3, "E": 3, "alpha": 1, "beta": 1}.items():
        same = pytest.approx(theirs[name]["estimate"], rel=1e-3)
        assert factor * ours[name]["estimate"] == same
    data = json.loads(
        _run("eval", "chinchilla", "N=1e9", "D=2e10", "--params", out, "--json").stdout
    )
    assert data["unit"] == "bits/byte"
    grid = ("--study", "leverage", "--params", out)
    with pytest.raises(UserError, match="its losses are in bits/byte, and tables in nats/token"):
        _run("simulate", "chinchilla", *grid)
    with pytest.raises(UserError, match="its losses are in bits/byte, and plans are compared in"):
        _run("advise", "--compute", "1e21", "--fits", out)


def test_fit_from_a_studys_entry(simulated, tmp_path):
    table = tmp_path / "runs.parquet"
    simulated(sizes=4).to_parquet(table)
    entry = {"name": "loss", "law": "sparsity.loss", "mapping": {"N": "N", "L": "L"}}
    entry |= {"holdout": "S >= 0.98", "protocol": {"sample": 3}, "bootstrap": 1}
    out = tmp_path / "loss.json"
    result = _run("fit", table, "--spec", json.dumps(entry), "--out", out)
    assert "sparsity.loss: 60 rows (simulated)" in result.stdout
    report = read_fit(out)
    assert report.name == "loss"
    assert report.parts[0].diagnostics.starts.run == 3
    assert report.parts[0].diagnostics.starts.grid == 437_400
    (tmp_path / "entry.json").write_text(json.dumps(entry))
    again = tmp_path / "again.json"
    _run("fit", table, "--spec", tmp_path / "entry.json", "--out", again)
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "sparsity.isoflop", "N=1e9", "S=0"], "no published coefficients; give --params"),
        (["eval", "sparsity.l"], "unknown law 'sparsity.l'; did you mean sparsity.loss? Known: "),
        (["fit", "none.parquet", "--law", "chinchilla"], "none.parquet: no such table"),
        (["fit", "none.parquet"], "--law is missing"),
        (["fit", "t.csv", "--law", "chinchilla", "--map", "L"], "--map 'L' is not VAR=COLUMN"),
        (["fit", "t.csv", "--law", "chinchilla", "--level", "2"], "level is 2"),
        (["fit", "t.csv", "--law", "chinchilla", "--bootstrap", "0"], "bootstrap is 0"),
        (
            ["eval", "chinchilla", "N=1e9", "D=2e10", "N=2e9"],
            "N is given twice: '1e9' and '2e9'",
        ),
        (["fit", "t.csv", "--spec", "{bad"], "--spec is not valid JSON"),
        (["fit", "t.csv", "--spec", "{}", "--law", "chinchilla"], "leave --law out"),
        (["fit", "t.csv", "--law", "chinchilla", "--out", "x"], "its name must end in .json"),
    ],
)
def test_a_users_mistake_is_one_line(arguments, message):
    with pytest.raises(UserError) as error:
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert message in str(error.value)


EVIDENCE = REPOSITORY / "docs/evidence/sparsity.parquet"


def test_n_of_a_law_is_its_own_column_of_a_studys_table(tmp_path):
    out = tmp_path / "own.json"
    words = ("--sample", 20, "--bootstrap", 5, "--rows", "N >= 1K, S > 0.5", "--out", out)
    done = _run("fit", EVIDENCE, "--law", "sparsity.loss", *words)
    assert "N is the table's column N_total" in done.stdout
    assert read_fit(out).spec["mapping"] == {"N": "N_total"}
    with pytest.raises(UserError, match="may be either here: say --map N=N_total or --map N=N_act"):
        _run("fit", EVIDENCE, "--law", "chinchilla", *words)
    dense = tmp_path / "dense.csv"
    pd.read_parquet(EVIDENCE).query("S == 0").to_csv(dense, index=False)
    words = ("--sample", 20, "--bootstrap", 5)
    _run("fit", dense, "--law", "chinchilla", *words)  # there both columns are one


def test_laws_of_other_sizes_are_compared_on_a_studys_table():
    words = ("--bootstrap", 2, "--json")
    done = _run("compare", EVIDENCE, "--laws", "granularity.loss,chinchilla", *words)
    data = json.loads(done.stdout)
    assert [law["law"].partition(":")[0] for law in data["laws"]] == ["granularity.loss"]
    assert "--map N=N_total or --map N=N_active" in data["refused"]["chinchilla"]


def test_numbers_are_written_as_people_write_them():
    words = ("eval", "sparsity.loss", "--json")
    data = json.loads(_run(*words, "N=1B", "D=20B", "S=98%").stdout)
    assert data["inputs"] == {"N": 1e9, "D": 2e10, "S": 0.98}
    assert data == json.loads(_run(*words, "N=1,000M", "D=2e10", "S=49/50").stdout)

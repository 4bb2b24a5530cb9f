"""moelaws fit, eval and laws as a user types them."""

import json

import pytest
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.fitting.report import read_fit
from moelaws.spec.errors import UserError


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


def test_fit_from_a_studys_entry(simulated, tmp_path):
    table = tmp_path / "runs.parquet"
    simulated(sizes=4).to_parquet(table)
    entry = {"name": "loss", "law": "sparsity.loss", "mapping": {"N": "N", "L": "L"}}
    entry |= {"holdout": "S >= 0.98", "protocol": {"sample": 3}, "bootstrap": 1}
    out = tmp_path / "loss.json"
    result = _run("fit", table, "--spec", json.dumps(entry), "--out", out)
    assert "sparsity.loss: 60 rows (imported)" in result.stdout
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
        (["eval", "sparsity.l"], "unknown law 'sparsity.l' (did you mean sparsity.loss?); known: "),
        (["fit", "none.parquet", "--law", "chinchilla"], "none.parquet: no such table"),
        (["fit", "none.parquet"], "--law is missing"),
        (["fit", "t.csv", "--law", "chinchilla", "--map", "L"], "--map 'L' is not VAR=COLUMN"),
        (["fit", "t.csv", "--law", "chinchilla", "--level", "2"], "level is 2"),
        (["fit", "t.csv", "--law", "chinchilla", "--bootstrap", "0"], "bootstrap is 0"),
        (["eval", "chinchilla", "N=1e9", "D=2e10", "N=2e9"], "N is given twice: 1e+09 and 2e+09"),
        (["fit", "t.csv", "--spec", "{bad"], "--spec is not valid JSON"),
        (["fit", "t.csv", "--spec", "{}", "--law", "chinchilla"], "leave --law out"),
        (["fit", "t.csv", "--law", "chinchilla", "--out", "x"], "its name must end in .json"),
    ],
)
def test_a_users_mistake_is_one_line(arguments, message):
    with pytest.raises(UserError) as error:
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert message in str(error.value)

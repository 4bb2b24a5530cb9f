"""Somebody else's table becomes a study's by a mapping file, or is refused in one clear line."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from moelaws.cli import cli
from moelaws.records import seal
from moelaws.spec.errors import UserError
from moelaws.tables.imported import import_table
from moelaws.tables.parquet import column_metadata, is_study, notes, read_study
from repository import REPOSITORY

ORIGIN = {"file": "runs.csv", "licence": "CC0-1.0", "attribution": "Nobody, 2026."}
COLUMNS = {
    "run_id": "name",
    "status": {"column": "state", "values": {"finished": "completed", "broke": "diverged"}},
    "N_active_nonemb": {"column": "params", "unit": "M"},
    "D": {"expression": "steps * batch * 1024"},
    "steps": "steps",
    "E": "experts",
    "k": {"value": 1},
    "S": {"expression": "(experts - k) / experts"},
    "L": {"expression": "ln(ppl)"},
}
RUNS = pd.DataFrame(
    {
        "name": ["a", "b", "c"],
        "state": ["finished", "finished", "broke"],
        "params": [10.0, 20.5, 30.0],
        "steps": [1000, 2000, 3000],
        "batch": [64, 64, 64],
        "experts": [1, 8, 64],
        "ppl": [20.0, 18.0, None],
    }
)


@pytest.fixture
def imported(tmp_path):
    """``imported(runs, **changes)``: the import of ``runs`` by the mapping with other keys."""

    def run(runs=RUNS, columns=(), **changes):
        runs.to_csv(tmp_path / "runs.csv", index=False)
        own = COLUMNS | dict(columns)
        own = {name: entry for name, entry in own.items() if entry is not None}
        mapping = {"study": "theirs", "origin": ORIGIN, "columns": own, **changes}
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping))
        return import_table(tmp_path / "runs.csv", tmp_path / "map.yaml")

    return run


def changed(**columns):
    return RUNS.assign(**columns)


def test_a_column_a_unit_a_constant_and_arithmetic_fill_a_studys_columns(imported, tmp_path):
    table = imported()
    table.write(tmp_path / "theirs.parquet")
    assert is_study(tmp_path / "theirs.parquet")
    frame = read_study(tmp_path / "theirs.parquet")
    assert frame["run_id"].tolist() == ["a", "b", "c"]
    assert frame["N_active_nonemb"].tolist() == [10_000_000, 20_500_000, 30_000_000]
    assert frame["D"].tolist() == [1000 * 64 * 1024, 2000 * 64 * 1024, 3000 * 64 * 1024]
    assert frame["S"].tolist() == [0, 0.875, 63 / 64]
    assert frame["L"].tolist()[:2] == pytest.approx([np.log(20), np.log(18)])
    assert frame["status"].tolist() == ["completed", "completed", "diverged"]
    assert set(frame["source"]) == {"imported"}
    # What the file does not tell is missing, never invented.
    assert frame[["N_total", "vocab_size", "C", "lr", "code", "tier"]].isna().all(axis=None)


def test_a_table_says_where_its_rows_are_from(imported, tmp_path):
    imported(columns={"L": {"expression": "ln(ppl)", "note": "on C4"}}).write(
        tmp_path / "t.parquet"
    )
    origin = json.loads(notes(tmp_path / "t.parquet")["imported"])
    assert origin["sha256"] == seal.digest(tmp_path / "runs.csv")
    assert (origin["licence"], origin["attribution"]) == ("CC0-1.0", "Nobody, 2026.")
    assert len(origin["mapping"]) == 64
    assert column_metadata(tmp_path / "t.parquet")["L"] == (
        "nats/token",
        "validation loss; here: on C4",
    )
    assert seal.inspect(tmp_path / "t.parquet")[0] == "whole"


def test_a_mapping_laid_out_otherwise_is_the_same_mapping(imported, tmp_path):
    first = imported().about["mapping"]
    path = tmp_path / "map.yaml"
    path.write_text("# a comment\n" + json.dumps(yaml.safe_load(path.read_text())))
    assert import_table(tmp_path / "runs.csv", path).about["mapping"] == first
    assert imported(rows="steps >= 2000").about["mapping"] != first


def test_rows_are_kept_by_numbers_by_words_and_by_the_last_step(imported):
    assert imported(rows="steps >= 2000").frame["run_id"].tolist() == ["b", "c"]
    assert imported(only={"state": ["finished"]}).frame["run_id"].tolist() == ["a", "b"]
    curves = pd.concat([RUNS, changed(steps=RUNS["steps"] // 2, ppl=[30.0, 31.0, 32.0])])
    assert imported(curves, last="steps").frame["steps"].tolist() == [1000, 2000, 3000]


def test_a_run_without_a_name_goes_by_its_row(imported):
    table = imported(columns={"run_id": None}, rows="steps >= 2000")
    assert table.frame["run_id"].tolist() == ["row-2", "row-3"]


def test_columns_of_its_own_come_with_unit_and_meaning(imported, tmp_path):
    more = {
        "router": {"column": "state", "type": "string", "unit": "1", "description": "how it ends"},
        "P": {"expression": "params * 1e6 * E", "type": "int", "unit": "parameters"}
        | {"description": "all"},
    }
    imported(more=more).write(tmp_path / "t.parquet")
    frame = read_study(tmp_path / "t.parquet")
    assert frame["P"].tolist() == [10_000_000, 164_000_000, 1_920_000_000]
    assert column_metadata(tmp_path / "t.parquet")["P"] == ("parameters", "all")
    assert frame["router"].tolist() == ["finished", "finished", "broke"]


@pytest.mark.parametrize(
    ("runs", "changes", "message"),
    [
        (RUNS, {"columns": {"E": "expert"}}, r"columns.E: .* no column 'expert'; did you mean exp"),
        (RUNS, {"columns": {"e": "experts"}}, r"columns: a study's table has no 'e' to fill"),
        (RUNS, {"columns": {"source": "state"}}, "'source' to fill; it is set by the import"),
        (RUNS, {"columns": {"E": {"column": "experts", "value": 1}}}, "exactly one of column, va"),
        (RUNS, {"columns": {"D": {"expression": "steps *"}}}, r"columns.D: .* is no arithmetic"),
        (RUNS, {"columns": {"D": {"expression": "steps * tokens"}}}, "no column 'tokens' of numb"),
        (RUNS, {"columns": {"E": "params"}}, "row 2: the value is 20.5; it must be a whole number"),
        (RUNS, {"columns": {"E": "name"}}, "row 1: column name is 'a'; it must be a number"),
        (RUNS, {"columns": {"D": {"expression": "1 / (steps - 1000)"}}}, "row 1: .* is inf; it mu"),
        (RUNS, {"columns": {"N_active_nonemb": "params"}}, "row 2: the value is 20.5"),
        (
            changed(params=[10, 20, 30]),
            {"columns": {"N_active_nonemb": "params"}},
            "N_active_nonemb is at most 30 parameters; say the unit of its column .* unit: M",
        ),
        (
            RUNS,
            {"columns": {"N_active_nonemb": {"column": "params", "unit": "miles"}}},
            "unit of N_active_nonemb is 'miles'; allowed for parameters: K, M, B, T",
        ),
        (RUNS, {"columns": {"L": "ppl"}}, "19 nats/token in the median row.*expression ln"),
        (RUNS, {"columns": {"status": {"value": "ok"}}}, "row 1: status is 'ok'; it must be one"),
        (RUNS, {"columns": {"status": {"value": "completed"}}}, r"row 3 \(run c\): the loss L is"),
        (
            changed(ppl=[20, np.inf, None]),
            {"columns": {"L": "ppl"}},
            r"row 2 \(run b\): L is inf; it must be a finite number above 0",
        ),
        (
            changed(state=["finished", "crashed", "broke"]),
            {},
            "row 2: column state is 'crashed', which values does not translate; it has broke, fin",
        ),
        (changed(name=["a", "b", "a"]), {}, "rows 1 and 3 are of one run, a; a table holds"),
        (
            pd.concat([RUNS, RUNS.iloc[:1]]),
            {"columns": {"run_id": None}},
            "rows 1 and 4 are the same in every column",
        ),
        (changed(experts=[1, 0, 64]), {}, r"row 2 \(run b\): S is -inf|must be a finite number"),
        (RUNS, {"columns": {"k": {"value": 2}, "S": None}}, "row 1: k is 2 and above E, 1"),
        (RUNS, {"columns": {"N_total_nonemb": {"value": 5e6}}}, "is 10000000 and above N_total_no"),
        (RUNS, {"rows": "steps > 1e9"}, "rows and only keep none of the 3 rows"),
        (RUNS, {"rows": "steps is 3"}, "is not COLUMN OP NUMBER"),
        (RUNS, {"only": {"stat": ["x"]}}, "no column 'stat'; did you mean state"),
        (RUNS, {"last": "steps", "columns": {"run_id": None}}, "last is steps, but columns.run_id"),
        (RUNS, {"origin": {**ORIGIN, "sha256": "0" * 64}}, r"its SHA-256 is [0-9a-f]{64}, and "),
        (RUNS, {"origin": {"file": "runs.csv"}}, "origin.licence"),
        (RUNS, {"more": {"E": {"column": "k", "type": "int", "unit": "1", "description": "x"}}},
         "more.E: a study's table has this column; put it under columns"),
    ],
)  # fmt: skip
def test_what_no_table_of_ours_may_hold_is_refused(imported, runs, changes, message):
    with pytest.raises(UserError, match=re.compile(message, re.S)) as refused:
        imported(runs, **changes)
    assert ".csv" in str(refused.value) or ".yaml" in str(refused.value)


def test_the_command_writes_the_table_and_names_what_is_unknown(imported, tmp_path):
    imported()
    words = ["import", str(tmp_path / "runs.csv"), "--mapping", str(tmp_path / "map.yaml")]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "t.parquet")])
    assert done.exit_code == 0, done.output
    assert "3 runs; unknown of them: tier, sweep, seed" in done.output
    assert "CC0-1.0: Nobody, 2026." in done.output
    data = json.loads(
        CliRunner().invoke(cli, [*words, "--json", "--out", str(tmp_path / "t.parquet")]).output
    )
    assert (data["rows"], data["origin"]["file"]) == (3, "runs.csv")
    assert "lr" not in data["columns"]


def test_a_shown_table_names_its_source(imported, tmp_path):
    table = tmp_path / "t.parquet"
    imported().write(table)
    shown = CliRunner().invoke(cli, ["show", str(table)])
    assert "runs.csv" in shown.output
    assert "CC0-1.0" in shown.output
    damaged = tmp_path / "damaged.parquet"
    shutil.copy(table, damaged)
    damaged.write_bytes(table.read_bytes().replace(b"CC0", b"GPL"))
    with pytest.raises(UserError, match="is damaged"):
        read_study(damaged)


def test_the_mapping_of_the_step_law_reads_a_table_of_its_columns(tmp_path):
    """Two of its 708 rows, as it prints them, in a table of our own: no licence lets us ship it."""
    (tmp_path / "moe_lr_bs_loss.csv").write_text(
        "seq_len,topk,nume,moeh,sed,h,ffnh,numh,numl,lr,bs,ti,loss,smooth loss,exp_name,numld,"
        "N,Na,D,total_time,moe_name\n"
        "2048,3,8,2888,8664,1408,3904,11,16,1.726e-04,32,30517,2.624,2.578,a,1,"
        "2156188672,1241270272,2000000000,18479.9,3in8\n"
        "2048,3,8,2888,8664,1408,3904,11,16,1.726e-04,64,15258,2.600,2.570,b,1,"
        "2156188672,1241270272,2000000000,18479.9,3in8\n"
    )
    mapping = yaml.safe_load((REPOSITORY / "config/imports/steplaw-moe.yaml").read_text())
    mapping["origin"]["sha256"] = ""
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping, sort_keys=False))
    frame = import_table(tmp_path / "moe_lr_bs_loss.csv", tmp_path / "map.yaml").frame
    attention = 126877696
    blocks = 15 * 3 * 1408 * (np.array([8, 3]) * 2888 + 3 * 2888) + 3 * 1408 * 3904
    first = frame.iloc[0]
    assert [first["N_total_nonemb"], first["N_active_nonemb"]] == list(attention + blocks)
    assert first["E_s"] == 3
    assert first["A"] == pytest.approx(6 / 11)
    assert (first["steps"] * first["batch_tokens"]) / first["D"] == pytest.approx(1, abs=1e-4)
    assert first["L"] == 2.578


def test_the_pattern_for_weights_and_biases_reads_such_an_export(tmp_path):
    header = (
        "Name,State,Runtime,seed,n_params,n_active_params,num_experts,top_k,d_model,d_expert,"
        "n_layers,seq_len,lr,batch_size,trainer/global_step,train/loss,val/loss"
    )
    (tmp_path / "wandb_export.csv").write_text(
        f'{header}\n"a","finished",60,1,9000000,3000000,8,2,64,128,4,256,0.01,32,1000,2.9,3.0\n'
        '"b","running",30,1,9000000,3000000,8,2,64,128,4,256,0.01,32,400,3.3,\n'
        '"c","failed",10,2,9000000,3000000,8,2,64,128,4,256,0.3,32,90,NaN,NaN\n'
    )
    path = REPOSITORY / "config/imports/wandb.yaml"
    frame = import_table(tmp_path / "wandb_export.csv", path).frame
    assert frame["run_id"].tolist() == ["a", "c"]
    assert frame["status"].tolist() == ["completed", "diverged"]
    assert frame["D"].tolist() == [1000 * 32 * 256, 90 * 32 * 256]
    assert frame[["S", "G"]].iloc[0].tolist() == [0.75, 1.0]

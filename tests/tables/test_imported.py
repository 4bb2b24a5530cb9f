"""Somebody else's table becomes a study's by one SELECT, or is refused in one clear line."""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from command_line import call, printed
from moelaws.files import seal
from moelaws.spec.errors import UserError
from moelaws.tables.imported import import_table
from moelaws.tables.parquet import column_metadata, is_study, notes, read_study
from repository import REPOSITORY

ORIGIN = {"file": "runs.csv", "licence": "CC0-1.0", "attribution": "Nobody, 2026."}
SQL = """
SELECT name AS run_id, CASE state WHEN 'finished' THEN 'completed' WHEN 'broke' THEN 'diverged'
  ELSE state END AS status, 1e6 * params AS N_active_nonemb, steps * batch * 1024 AS D, steps,
  experts AS E, 1 AS k, (E - k) / E AS S, ln(ppl) AS L
FROM source ORDER BY _row
"""
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
DONE = "SELECT name AS run_id, 'completed' AS status, 3.0 AS L"


@pytest.fixture
def imported(tmp_path):
    """``imported(runs, sql, **changes)``: the import of ``runs`` by a mapping with other keys."""

    def run(runs=RUNS, sql=SQL, **changes):
        runs.to_csv(tmp_path / "runs.csv", index=False)
        mapping = {"study": "theirs", "origin": ORIGIN, "sql": sql, **changes}
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping))
        return import_table(tmp_path / "runs.csv", tmp_path / "map.yaml")

    return run


def test_one_select_fills_a_studys_columns(imported, tmp_path):
    more = {"router": {"type": "string", "unit": "1", "description": "how it ends"}}
    sql = SQL.replace("\nFROM", ", state AS router\nFROM")
    told = {"L": "on C4", "router": "in one word"}
    imported(sql=sql, more=more, notes=told).write(tmp_path / "theirs.parquet")
    assert is_study(tmp_path / "theirs.parquet")
    frame = read_study(tmp_path / "theirs.parquet")
    assert frame["run_id"].tolist() == ["a", "b", "c"]
    assert frame["N_active_nonemb"].tolist() == [10_000_000, 20_500_000, 30_000_000]
    assert frame["D"].tolist() == [1000 * 64 * 1024, 2000 * 64 * 1024, 3000 * 64 * 1024]
    assert frame["S"].tolist() == [0, 0.875, 63 / 64]
    assert frame["L"].tolist()[:2] == pytest.approx([np.log(20), np.log(18)])
    assert frame["status"].tolist() == ["completed", "completed", "diverged"]
    assert frame["router"].tolist() == ["finished", "finished", "broke"]
    assert set(frame["source"]) == {"imported"}
    # What the file does not tell is missing, never invented.
    assert frame[["N_total", "vocab_size", "C", "lr", "code", "tier"]].isna().all(axis=None)
    about = column_metadata(tmp_path / "theirs.parquet")
    assert about["L"] == ("nats/token", "validation loss; here: on C4")
    assert about["router"] == ("1", "how it ends; here: in one word")
    origin = json.loads(notes(tmp_path / "theirs.parquet")["imported"])
    assert origin["sha256"] == seal.digest(tmp_path / "runs.csv")
    assert (origin["licence"], origin["attribution"]) == ("CC0-1.0", "Nobody, 2026.")
    assert len(origin["mapping"]) == 64
    assert seal.inspect(tmp_path / "theirs.parquet")[0] == "whole"


def test_numbers_are_doubles_and_other_columns_are_texts(imported):
    runs = RUNS.assign(params=["10M", "20.5M", ""], steps=[3e9, 2, 1], state="x")
    sql = "SELECT name || '-' || experts::INT AS run_id, 'completed' AS status, 3 AS L, D, E FROM "
    sql += "(SELECT *, steps * steps AS D, length(state) AS E FROM source WHERE params < 2e7)"
    with pytest.raises(UserError, match=r"D is 9e\+18; it must be a whole number below 9e18"):
        imported(runs, sql)
    frame = imported(runs.assign(steps=3), sql, notes={"D": "a toy"}).frame
    assert frame[["run_id", "D", "E"]].to_numpy().tolist() == [["a-1", 9, 1]]


def test_names_that_differ_in_capital_letters_alone_are_never_mistaken(imported):
    runs = RUNS.assign(D=1e9, d=64)
    with pytest.raises(UserError, match=r"no column 'd'; there are .*, D_8, d_9, _row"):
        imported(runs, DONE + ", d AS d_model FROM source")
    assert imported(runs, DONE + ", D_8 AS D, d_9 AS d_model FROM source").frame["D"][1] == 1e9


def test_a_count_that_rounding_moved_off_a_whole_number_is_that_number(imported):
    assert 1.001 * 1e6 != 1001000
    counts = imported(RUNS.assign(params=[1.001, 20.5, 0.067])).frame["N_active_nonemb"]
    assert counts.tolist() == [1_001_000, 20_500_000, 67_000]
    with pytest.raises(UserError, match=r"row 1: E is 1000\.00001; .* as round\(...\) makes it"):
        imported(RUNS.assign(experts=[1000.00001, 8, 64]))


def test_losses_are_left_to_runs_that_completed(imported):
    runs = RUNS.assign(ppl=[2.0, 1.9, np.inf], other=[3.0, np.inf, np.inf])
    sql = SQL.replace("AS L", "AS L, other AS L_train")
    with pytest.raises(UserError, match="row 2: L_train of run b is inf"):
        imported(runs, sql)
    frame = imported(runs.assign(state=["finished", "broke", "broke"]), sql).frame
    assert frame["L"].notna().tolist() == [True, False, False]
    assert frame["L_train"].notna().tolist() == [True, False, False]


def test_bits_a_byte_are_a_loss_where_there_is_none_in_nats(imported):
    sql = SQL.replace("ln(ppl) AS L", "ppl / 18 AS bpb")
    assert imported(sql=sql).frame["bpb"].notna().tolist() == [True, True, False]
    missing = RUNS.assign(ppl=[20, None, None])
    for text, loss in ((sql, "bpb"), (SQL, "L")):
        with pytest.raises(UserError, match=rf"row 2: the loss {loss} of run b is missing, "):
            imported(missing, text)


def test_copies_of_a_row_are_refused_and_rows_of_one_run_are_too(imported):
    copies = pd.concat([RUNS, RUNS.iloc[:2]])
    with pytest.raises(UserError, match=r"rows 1 and 4 both have run_id a; .*QUALIFY row_number"):
        imported(copies)
    nameless = SQL.replace("name AS", "'row-' || _row AS")
    with pytest.raises(UserError, match=r"rows 1 and 4 are the same in every col.*SELECT DISTINCT"):
        imported(copies, nameless)
    kept = nameless.replace("FROM source", "FROM (SELECT min(_row) AS _row, * EXCLUDE (_row) FROM"
                            " source GROUP BY ALL)")  # fmt: skip
    assert imported(copies, kept).frame["run_id"].tolist() == ["row-1", "row-2", "row-3"]
    alike = RUNS.assign(params=10.0, steps=1000, experts=8, ppl=20.0, state="finished")
    assert len(imported(alike).frame) == 3  # their names tell them apart in the source as well


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sql": "SELECT expert, moe FROM source"}, "no column 'expert', 'moe'; there are name, s"),
        ({"sql": "SELECT name AS run_id, 1 AS M FROM source"}, "study's table has no column 'M'"),
        ({"sql": "SELECT steps FROM source"}, "must also give run_id, status; where all runs comp"),
        ({"sql": "SELECT * FROM read_csv('runs.csv')"}, 'SQL has no answer: .* "runs.csv"'),
        ({"sql": "SELECT repeat('x', 4000000000) AS run_id FROM source"}, "sql: .* more than 2 GB"),
        ({"sql": DONE + ", state AS lr FROM source"}, "row 1: column lr is 'finished'; it must be"),
        ({"sql": DONE + ", 2 AS k, 1 AS E FROM source"}, "row 1: k is 2 and above E, 1"),
        ({"sql": SQL.replace("ln(ppl)", "ppl")}, r"19 nats/token in the median row.* ln\(p\)"),
        ({"sql": SQL.replace("1e6", "2")}, "is at most 60 parameters. .*notes.N_active_nonemb$"),
        ({"sql": SQL.replace("'completed'", "'ok'")}, "status of run a is 'ok'; it must be one of"),
        ({"origin": {**ORIGIN, "sha256": "0" * 64}}, r"its SHA-256 is [0-9a-f]{64}, and "),
        ({"notes": {"R": "x"}}, "notes: the table has no column 'R'"),
    ],
)
def test_what_no_table_of_ours_may_hold_is_refused(imported, changes, message):
    with pytest.raises(UserError, match=re.compile(message, re.S)) as refused:
        imported(**changes)
    assert ".csv" in str(refused.value) or ".yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_the_register_says_of_public_runs_is_checked(imported):
    said = {"what": "runs", "losses": "L on theirs", "runs": 3, "C": [6e18, 6e19]}
    sql = SQL.replace("AS L", "AS L, 6e15 * steps AS C")
    imported(RUNS.assign(steps=[1000, 2000, 10000]), sql, public=said | {"assumed": ["One."]})
    both = r"3 runs with C from 6e\+18 to 1.8e\+19, and .*says 3 runs with C from 6e\+18 to 6e\+19"
    with pytest.raises(UserError, match=f"runs.csv: the table has {both}"):
        imported(RUNS, sql, public=said)


def test_a_table_is_never_imported_over_its_own_source(imported, tmp_path, monkeypatch):
    imported().write(tmp_path / "theirs.parquet")
    source = (tmp_path / "theirs.parquet").read_bytes()
    mapping = {"study": "theirs", "origin": ORIGIN, "sql": "SELECT run_id, status, L FROM source"}
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.parquet").symlink_to("theirs.parquet")
    for out in ([], ["--out", tmp_path / "theirs.parquet"], ["--out", "link.parquet"]):
        with pytest.raises(UserError, match=r"parquet is the source itself; .*--out"):
            call("import", "theirs.parquet", "--mapping", "map.yaml", *out)
    assert (tmp_path / "theirs.parquet").read_bytes() == source


def test_files_are_tables_of_their_own(tmp_path):
    """A list below a key and a table below a heading; each file has a digest of its own."""
    rows = {"metric": "loss", "runs": [{"name": n, "loss": x} for n, x in (("a", 3), ("b", 2.5))]}
    (tmp_path / "runs.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "README.md").write_text(
        "# A page\n\n## Tokens\n\n| name | tokens |\n|---|--:|\n| b | 2.5B |\n| a | 1,000M |\n"
    )
    page = {"file": "README.md", "part": "Tokens", "url": "https://x.org/README.md"}
    origin = ORIGIN | {"file": "runs.json", "part": "runs", "others": [page]}
    sql = "SELECT name AS run_id, 'completed' AS status, loss AS L, tokens AS D "
    sql += "FROM source JOIN source2 USING (name) ORDER BY source._row"
    mapping = {"study": "theirs", "origin": origin, "sql": sql}
    path, out = tmp_path / "map.yaml", tmp_path / "t.parquet"
    path.write_text(yaml.safe_dump(mapping))
    printed("import", tmp_path, "--mapping", path, "--out", out)
    digest = hashlib.sha256((tmp_path / "README.md").read_bytes()).hexdigest()
    shown = printed("show", out)
    for line in ("file 2: README.md", f"sha256 2: {digest}"):
        assert line in shown
    frame = read_study(out)
    assert frame[["run_id", "D"]].to_numpy().tolist() == [["a", 1000000000], ["b", 2500000000]]


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
    mapping["public"] = None  # it says 708 runs
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
        "n_layers,seq_len,lr,batch_size,trainer/global_step,train/loss,val/loss\n"
    )
    (tmp_path / "wandb_export.csv").write_text(
        f'{header}"a","finished",60,1,9000000,3000000,8,2,64,128,4,256,0.01,32,1000,2.9,3.0\n'
        '"b","running",30,1,9000000,3000000,8,2,64,128,4,256,0.01,32,400,3.3,\n'
        '"c","failed",10,2,9000000,3000000,8,2,64,128,4,256,0.3,32,90,3.1,NaN\n'
        '"d","finished",10,2,9000000,3000000,8,2,64,128,4,256,0.3,32,90,Infinity,NaN\n'
    )
    path = REPOSITORY / "config/imports/wandb.yaml"
    frame = import_table(tmp_path / "wandb_export.csv", path).frame
    # That a process failed does not say that its loss diverged; a loss that is NaN does.
    assert frame["run_id"].tolist() == ["a", "d"]
    assert frame["status"].tolist() == ["completed", "diverged"]
    assert frame["D"].tolist() == [1000 * 32 * 256, 90 * 32 * 256]
    assert frame[["S", "G"]].iloc[0].tolist() == [0.75, 1.0]

"""Somebody else's table becomes a study's by a mapping file, or is refused in one clear line."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from command_line import call
from moelaws.files import seal
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column
from moelaws.tables.imported import import_table
from moelaws.tables.parquet import column_metadata, is_study, notes, read_study, write_table
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


def by_mapping(table, columns, **changes):
    """The import of a file by a mapping of ``columns``, which is written beside it."""
    mapping = {"study": "theirs", "origin": ORIGIN, "columns": columns, **changes}
    (table.parent / "map.yaml").write_text(yaml.safe_dump(mapping))
    return import_table(table, table.parent / "map.yaml")


@pytest.fixture
def imported(tmp_path):
    """``imported(runs, **changes)``: the import of ``runs`` by the mapping with other keys."""

    def run(runs=RUNS, columns=(), **changes):
        runs.to_csv(tmp_path / "runs.csv", index=False)
        own = COLUMNS | dict(columns)
        own = {name: entry for name, entry in own.items() if entry is not None}
        return by_mapping(tmp_path / "runs.csv", own, **changes)

    return run


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


def test_rows_are_kept_by_numbers_by_words_and_by_the_last_step(imported):
    assert imported(rows="steps >= 2000").frame["run_id"].tolist() == ["b", "c"]
    assert imported(only={"state": ["finished"]}).frame["run_id"].tolist() == ["a", "b"]
    curves = pd.concat([RUNS, RUNS.assign(steps=RUNS["steps"] // 2, ppl=[30.0, 31.0, None])])
    assert imported(curves, last="steps").frame["steps"].tolist() == [1000, 2000, 3000]


HISTORY = pd.DataFrame(
    {
        "name": [*"aaabb"],
        "state": "finished",
        "params": 10.0,
        "steps": [10, 500, 510, 500, 510],
        "batch": 6400,
        "experts": 8,
        "val/loss": [9.0, 3.0, None, None, None],
    }
)


@pytest.mark.parametrize(
    "loss",
    [
        {"L": "val/loss"},
        {"L": {"expression": "ln(L_train)"}, "L_train": "val/loss"},  # by way of a column of ours
        {"L": {"expression": "L / D * D"}},  # in its own expression L is the source's
    ],
)
def test_the_last_row_is_the_last_that_has_a_loss(imported, loss):
    history = HISTORY.assign(L=HISTORY["val/loss"])
    frame = imported(history, loss, last="steps", without_loss="diverged").frame
    assert frame["steps"].tolist() == [500, 510]
    assert frame["status"].tolist() == ["completed", "diverged"]
    with pytest.raises(UserError, match="the loss L of run b is missing"):
        imported(history, loss, last="steps")


@pytest.mark.parametrize(("keep", "lr"), [("first", 0.1), ("last", 0.3)])
def test_of_copies_and_rows_of_one_run_the_mapping_says_which_is_kept(imported, keep, lr):
    copies = pd.concat([RUNS, RUNS.iloc[:2]])
    with pytest.raises(UserError, match=r"rows 1 and 4 are the same in every column; .duplicates:"):
        imported(copies, {"run_id": None})
    frame = imported(copies, {"run_id": None}, duplicates=keep).frame
    assert frame["run_id"].tolist() == (
        ["row-1", "row-2", "row-3"] if keep == "first" else ["row-3", "row-4", "row-5"]
    )
    trials = pd.concat([RUNS.iloc[:1].assign(lr=0.1), RUNS.iloc[:1].assign(lr=0.3)])
    with pytest.raises(
        UserError, match=r"rows 1 and 2 both have run_id a; .* .duplicates: first. in"
    ):
        imported(trials, {"lr": "lr"})
    for others in ({}, {"last": "steps"}):  # both rows have the highest step
        assert imported(trials, {"lr": "lr"}, duplicates=keep, **others).frame["lr"].tolist() == [
            lr
        ]


TWICE = pd.concat([RUNS, RUNS.assign(ppl=[21.0, 17.0, None]), RUNS.assign(ppl=[19.0, None, 3.0])])


def test_of_repeated_runs_the_best_is_kept_or_all_are(imported):
    with pytest.raises(UserError, match="row 8: the loss L of run b#3 is missing"):
        imported(TWICE, duplicates="all")
    repeated = TWICE.assign(ppl=TWICE["ppl"].fillna(40.0))
    best = imported(repeated, duplicates="best").frame
    assert best["run_id"].tolist() == ["c", "b", "a"]  # in the source's order
    assert best.set_index("run_id")["L"].to_dict() == pytest.approx(
        {"a": np.log(19), "b": np.log(17), "c": np.nan}, nan_ok=True
    )
    every = imported(repeated, duplicates="all").frame
    assert every["run_id"].tolist() == [*"abc", "a#2", "b#2", "c#2", "a#3", "b#3", "c#3"]
    same = pd.concat([RUNS.iloc[:1]] * 2)  # copies of a row are runs too, if the mapping says so
    assert imported(same, duplicates="all").frame["run_id"].tolist() == ["a", "a#2"]
    assert imported(same, {"run_id": None}, duplicates="all").frame["run_id"].tolist() == [
        *("row-1", "row-2")
    ]


def test_the_steps_say_which_runs_are_complete_where_states_lie(imported):
    runs = RUNS.assign(
        state=["crashed", "failed", "running"], last=[999, 1998, 2999], ppl=[20.0, 18.0, 19.0]
    )
    status = {"status": {"value": "completed"}}
    left = {"computed": {"left": "steps - 1 - last"}, "rows": "left <= 0"}
    assert imported(runs, status, **left).frame["run_id"].tolist() == ["a", "c"]
    for name, message in (("ppl", "has a column of this name"), ("x", "no column 'lost'")):
        with pytest.raises(UserError, match=rf"map.yaml: computed.{name}: .*{message}"):
            imported(runs, status, computed={name: "steps - lost"})


def test_a_pattern_takes_a_part_of_a_text(imported):
    runs = RUNS.assign(
        name=["a.model-12m.lr", "b.model-100m.lr", "c.model-7m.lr"],
        tags=["['adam_lr=0.002', 'd=5']", "['adam_lr=1e-3']", "['adam_lr=0.5']"],
    )
    size = {"column": "name", "pattern": "model-([0-9]+)m", "unit": "M"}
    columns = {"N_active_nonemb": size, "lr": {"column": "tags", "pattern": "adam_lr=([0-9.e-]+)"}}
    frame = imported(runs, columns).frame
    assert frame["N_active_nonemb"].tolist() == [12_000_000, 100_000_000, 7_000_000]
    assert frame["lr"].tolist() == [0.002, 0.001, 0.5]
    words = {"column": "name", "pattern": "(a|b|c)[.]", "values": {"a": 1, "b": 2, "c": 3}}
    assert imported(runs, {"seed": words}).frame["seed"].tolist() == [1, 2, 3]
    with pytest.raises(UserError, match=r"row 3: column name is 'c\.model.*pattern does not match"):
        imported(runs, {"seed": words | {"pattern": "(a|b)[.]"}})
    for pattern, message in (("(", "no regular expr"), ("a", "has 0 groups"), ("(a)(b)", "has 2")):
        with pytest.raises(UserError, match=message):
            imported(runs, {"seed": words | {"pattern": pattern}})


def test_bits_a_byte_are_a_loss_where_no_loss_in_nats_is_mapped(imported):
    runs = RUNS.assign(bpb=[1.1, 1.0, 7.0])
    frame = imported(runs, {"L": None, "bpb": "bpb"}).frame
    assert frame["bpb"].notna().tolist() == [True, True, False]  # the third run diverged
    assert frame["L"].isna().all()
    none = runs.assign(bpb=[1.1, None, None])
    with pytest.raises(UserError, match="row 2: the loss bpb of run b is missing"):
        imported(none, {"L": None, "bpb": "bpb"})
    with pytest.raises(UserError, match="row 2: the loss L of run b is missing"):
        imported(runs.assign(ppl=[20, None, None]), {"bpb": "bpb"})
    lost = imported(none, {"L": None, "bpb": "bpb"}, without_loss="diverged").frame
    assert lost["status"].tolist() == ["completed", "diverged", "diverged"]
    steps = pd.concat([runs, none.assign(steps=none["steps"] + 9)])
    last = imported(steps, {"L": None, "bpb": "bpb"}, last="steps").frame
    assert last["steps"].tolist() == [2000, 3000, 1009]


def test_what_the_register_says_of_public_runs_is_checked(imported):
    said = {"what": "runs", "losses": "L on theirs", "runs": 3, "C": [6e18, 6e19]}
    columns = {"C": {"expression": "6e15 * steps"}}
    imported(RUNS.assign(steps=[1000, 2000, 10000]), columns, public=said | {"assumed": ["One."]})
    with pytest.raises(
        UserError,
        match=r"runs.csv: the table has 3 runs with C from 6e\+18 to 1.8e\+19, and .*map.yaml says "
        r"3 runs with C from 6e\+18 to 6e\+19",
    ):
        imported(RUNS, columns, public=said)
    with pytest.raises(UserError, match=r"the table has 2 runs with .* says 3 runs"):
        imported(RUNS.iloc[:2], columns, public=said)


def test_columns_are_joined_to_the_name_of_a_run(imported):
    seeds = pd.concat([RUNS.assign(seed=1), RUNS.assign(seed=2)])
    names = {"run_id": {"columns": ["name", "seed"]}}
    assert imported(seeds, names).frame["run_id"].tolist() == [
        *("a-1", "b-1", "c-1", "a-2", "b-2", "c-2")
    ]
    with pytest.raises(UserError, match=r"run_id: row 2: column seed is empty; it must say"):
        imported(seeds.assign(seed=[1.0, None, 1.0, 2.0, 2.0, 2.0]), names)
    with pytest.raises(
        UserError, match=r"columns.E: this column holds numbers; columns are joined"
    ):
        imported(seeds, names | {"E": {"columns": ["experts"]}})


def test_a_table_with_a_column_for_each_budget_has_a_row_for_each_filled_cell(imported):
    wide = RUNS.drop(columns="ppl").assign(loss_18=[3.0, 2.9, None], loss_19=[2.8, None, 2.7])
    long = {"columns": {"loss_18": "1e18", "loss_19": 1e19}, "name": "flops", "value": "loss"}
    columns = {"L": "loss", "C": "flops", "run_id": None, "status": {"value": "completed"}}
    frame = imported(wide, columns, long=long).frame
    assert frame[["E", "C", "L"]].to_numpy().tolist() == [
        *([1, 1e18, 3.0], [8, 1e18, 2.9], [1, 1e19, 2.8], [64, 1e19, 2.7])
    ]
    assert frame["run_id"][2] == "row-1 (loss_19)"
    with pytest.raises(UserError, match=r"row 3 .loss_19.: L of run row-3 .* is -2"):
        imported(wide.assign(loss_19=[2.8, None, -2]), columns, long=long)
    with pytest.raises(UserError, match="the table has no column 'loss_20'; did you mean loss_"):
        imported(wide, columns, long=long | {"columns": {"loss_20": 1e20}})
    with pytest.raises(UserError, match="long: the table has a column 'steps' already"):
        imported(wide, columns, long=long | {"name": "steps"})


def test_a_count_that_rounding_moved_off_a_whole_number_is_that_number(imported):
    assert 1.001 * 1e6 != 1001000
    params = [1.001, 20.5, 0.067]
    assert imported(RUNS.assign(params=params)).frame["N_active_nonemb"].tolist() == [
        *(1_001_000, 20_500_000, 67_000)
    ]
    with pytest.raises(
        UserError, match=r"row 1: the value is 1000\.00001; .* round.COLUMN. rounds"
    ):
        imported(RUNS.assign(experts=[1000.00001, 8, 64]))


@pytest.mark.parametrize(
    ("name", "declared", "unit", "message"),
    [
        ("N_active", "parameters", "M", "column N_active is in parameters, .*leave unit: M out"),
        ("L", "bits/token", "", "L in nats/token; say so with unit: bits"),
    ],
)
def test_a_unit_that_the_source_declares_is_not_converted_twice(
    tmp_path, name, declared, unit, message
):
    frame = pd.DataFrame({"N_active": [1e7, 2e7], "L": [3.0, 2.9]})
    columns = [Column(n, "float", declared if n == name else "1", "") for n in frame]
    write_table(frame, columns, tmp_path / "own.parquet", {})
    own = {"status": {"value": "completed"}, name: {"column": name, "unit": unit}}
    with pytest.raises(UserError, match=rf"map.yaml: columns.{name}: .*{message}") as refused:
        by_mapping(tmp_path / "own.parquet", {"L": "L"} | own)
    assert "--unit" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("loss", ["ppl", {"expression": "ln(ppl)"}])
def test_a_run_that_diverged_is_kept_and_has_no_loss(imported, loss):
    runs = RUNS.assign(ppl=[2.0, 1.9, np.inf], other=[3.0, np.inf, np.inf])
    last_finished = runs.assign(state=["finished", "broke", "broke"])
    gap = {"expression": "L - ln(2)", "type": "float", "unit": "nats/token", "description": "gap"}
    frame = imported(last_finished, {"L": loss, "L_train": "other"}, more={"gap": gap}).frame
    assert frame["gap"].notna().tolist() == [True, False, False]
    assert frame["status"].tolist() == ["completed", "diverged", "diverged"]
    assert frame["L"].notna().tolist() == [True, False, False]
    assert frame["L_train"].notna().tolist() == [True, False, False]
    with pytest.raises(UserError, match="row 2: L_train of run b is inf"):
        imported(runs, {"L": loss, "L_train": "other"})


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
        (RUNS, {"columns": {"source": "state"}}, "'source' to fill; it is set by the import"),
        (RUNS, {"columns": {"E": "params"}}, "row 2: the value is 20.5; it must be a whole number"),
        (
            RUNS,
            {"columns": {"S": {"expression": "1 - A"}, "A": {"expression": "1 - S"}}},
            "map.yaml: these expressions name each other: (A -> S -> A|S -> A -> S)",
        ),
        (
            RUNS.assign(params=[10, 20, 30]),
            {"columns": {"N_active_nonemb": "params"}},
            "N_active_nonemb is at most 30 parameters. .* `unit: M`, or `unit: parameters` if",
        ),
        (RUNS, {"columns": {"status": None}}, "columns.status is missing; where all runs complet"),
        (RUNS, {"columns": {"L": "ppl"}}, "19 nats/token in the median row.*expression ln"),
        (RUNS, {"columns": {"status": {"value": "ok"}}}, "row 1: status is 'ok'; it must be one"),
        (RUNS.assign(state=["finished", "crashed", "broke"]), {}, "row 2: column state is"),
        (RUNS, {"columns": {"k": {"value": 2}, "S": None}}, "row 1: k is 2 and above E, 1"),
        (RUNS, {"origin": {**ORIGIN, "sha256": "0" * 64}}, r"its SHA-256 is [0-9a-f]{64}, and "),
        (RUNS, {"origin": {"file": "runs.csv"}}, "origin.licence"),
    ],
)  # fmt: skip
def test_what_no_table_of_ours_may_hold_is_refused(imported, runs, changes, message):
    with pytest.raises(UserError, match=re.compile(message, re.S)) as refused:
        imported(runs, **changes)
    assert ".csv" in str(refused.value) or ".yaml" in str(refused.value)


def test_a_table_is_never_imported_over_its_own_source(imported, tmp_path, monkeypatch):
    imported().write(tmp_path / "theirs.parquet")
    source = (tmp_path / "theirs.parquet").read_bytes()
    by_mapping(tmp_path / "theirs.parquet", {name: name for name in ("run_id", "status", "L")})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.parquet").symlink_to("theirs.parquet")
    for out in ([], ["--out", tmp_path / "theirs.parquet"], ["--out", "link.parquet"]):
        with pytest.raises(UserError, match=r"parquet is the source itself; .*--out"):
            call("import", "theirs.parquet", "--mapping", "map.yaml", *out)
    assert (tmp_path / "theirs.parquet").read_bytes() == source


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
        "n_layers,seq_len,lr,batch_size,trainer/global_step,train/loss,val/loss"
    )
    (tmp_path / "wandb_export.csv").write_text(
        f'{header}\n"a","finished",60,1,9000000,3000000,8,2,64,128,4,256,0.01,32,1000,2.9,3.0\n'
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

"""A source of several files becomes one table: rows that follow, and columns that join."""

import hashlib
import json

import pandas as pd
import pytest
import yaml

from command_line import printed
from moelaws.spec.errors import UserError
from moelaws.tables.imported import import_table

COLUMNS = {"run_id": "name", "status": {"value": "completed"}, "L": "loss", "E": "experts"}
FIRST = pd.DataFrame({"name": ["a", "b"], "loss": [3.0, 2.5], "experts": [4, 8]})
SECOND = pd.DataFrame({"name": ["c", "d"], "loss": [2.9, 2.4], "experts": [4, 16]})
TOKENS = pd.DataFrame({"id": ["b", "x", "a"], "loss": [9.0, 9.0, 9.0], "tokens": [2e9, 5e9, 1e9]})


@pytest.fixture
def imported(tmp_path):
    """``imported(files, others, **changes)``: the import of CSV files, from their folder."""

    def run(files, others, **changes):
        for name, frame in files.items():
            frame.to_csv(tmp_path / name, index=False)
        first = next(iter(files))
        origin = {"file": first, "others": others, "licence": "CC0-1.0", "attribution": "Nobody."}
        mapping = {"study": "theirs", "origin": origin, "columns": COLUMNS} | changes
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping))
        return import_table(tmp_path, tmp_path / "map.yaml")

    return run


def test_rows_of_files_follow_each_other_and_say_whose_they_are(imported, tmp_path):
    router = {"column": "file", "type": "string", "unit": "1", "description": "router"}
    router["values"] = {"gshard.csv": "gshard", "spm.csv": "spm"}
    files = {"gshard.csv": FIRST, "spm.csv": SECOND}
    table = imported(files, [{"file": "spm.csv"}], more={"router": router})
    assert table.frame["run_id"].tolist() == ["a", "b", "c", "d"]
    assert table.frame["router"].tolist() == ["gshard", "gshard", "spm", "spm"]
    digest = hashlib.sha256((tmp_path / "spm.csv").read_bytes()).hexdigest()
    assert (table.about["file 2"], table.about["sha256 2"]) == ("spm.csv", digest)
    nameless = imported(files, [{"file": "spm.csv"}], columns=COLUMNS | {"run_id": "experts"},
                        duplicates="all").frame  # fmt: skip
    assert nameless["run_id"].tolist() == ["4", "8", "4#2", "16"]
    wrong = files | {"spm.csv": SECOND.assign(loss=[2.9, -1])}
    with pytest.raises(UserError, match=r"row 2 .spm\.csv.: L of run d is -1"):
        imported(wrong, [{"file": "spm.csv"}])
    with pytest.raises(UserError, match=r"gshard\.csv has a column 'file' already"):
        imported(files | {"gshard.csv": FIRST.assign(file="x")}, [{"file": "spm.csv"}])


JOIN = {"file": "old.csv", "join": "name", "columns": {"tokens": "D"}}
TABLES = {"new.csv": FIRST, "old.csv": TOKENS.rename(columns={"id": "name"})}


def test_columns_of_another_file_join_by_a_column_of_both(imported):
    with_tokens = COLUMNS | {"D": "D"}
    frame = imported(TABLES, [JOIN], columns=with_tokens).frame
    assert frame["D"].tolist() == [1_000_000_000, 2_000_000_000]
    assert frame["L"].tolist() == [3.0, 2.5]  # of the first file: the second has other losses
    renamed = JOIN | {"columns": {"tokens": "D", "loss": "old_loss", "name": "copy"}}
    assert imported(TABLES, [renamed], columns=COLUMNS | {"L": "old_loss"}).frame["L"].tolist() == [
        *(9.0, 9.0)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": {}}, r"old\.csv: with it there are two columns 'loss'; `columns` says which"),
        ({"columns": {"tokens": "D", "loss": "D"}}, "with it there are two columns 'D'"),
        ({"columns": {"token": "D"}}, "has no column 'token' to join; did you mean tokens"),
    ],
)
def test_what_cannot_join_is_refused(imported, change, message):
    with pytest.raises(UserError, match=message):
        imported(TABLES, [JOIN | change])


def test_each_row_has_one_partner(imported):
    alone = TABLES | {"old.csv": TABLES["old.csv"].iloc[1:]}
    with pytest.raises(UserError, match=r"row 2: .*old\.csv has no row whose name is 'b'"):
        imported(alone, [JOIN])
    twice = TABLES | {"old.csv": pd.concat([TABLES["old.csv"], TABLES["old.csv"]])}
    with pytest.raises(UserError, match=r"rows 1 and 4 of .*old\.csv both have name b"):
        imported(twice, [JOIN])


def test_a_list_below_a_key_and_a_table_below_a_heading_are_parts_of_files(tmp_path):
    rows = {"metric": "loss", "runs": FIRST.to_dict("records")}
    (tmp_path / "runs.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "README.md").write_text(
        "# A page\n\n## Tokens\n\n| name | tokens |\n|---|--:|\n| b | 2.5B |\n| a | 1,000M |\n"
    )
    page = {"file": "README.md", "part": "Tokens", "join": "name", "url": "https://x.org/README.md"}
    origin = {"file": "runs.json", "part": "runs", "others": [page]}
    origin |= {"licence": "CC0-1.0", "attribution": "Nobody."}
    mapping = {"study": "theirs", "origin": origin, "columns": COLUMNS | {"D": "tokens"}}
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping))
    words = (
        "import",
        tmp_path,
        "--mapping",
        tmp_path / "map.yaml",
        "--out",
        tmp_path / "t.parquet",
    )
    assert "no digest known of README.md" in printed(*words)  # which another place has
    shown = printed("show", tmp_path / "t.parquet")
    assert "file 2: README.md" in shown
    assert "digest 2: no digest known" in shown
    frame = import_table(tmp_path, tmp_path / "map.yaml").frame
    assert frame["D"].tolist() == [1_000_000_000, 2_500_000_000]


def test_each_file_has_a_digest_of_its_own(imported, tmp_path):
    with pytest.raises(UserError, match=r"old\.csv: its SHA-256 is .*; get that file from https:"):
        imported(TABLES, [JOIN | {"sha256": "0" * 64, "url": "https://x.org/old.csv"}])
    with pytest.raises(UserError, match=r"new\.csv is one file, .* of new\.csv, old\.csv: name"):
        import_table(tmp_path / "new.csv", tmp_path / "map.yaml")
    (tmp_path / "old.csv").unlink()
    with pytest.raises(UserError, match=r"old\.csv: no such table"):
        import_table(tmp_path, tmp_path / "map.yaml")

"""moelaws export dataset: tables of runs that datasets and mlcroissant load."""

import hashlib
import json
import os
import shutil

import pyarrow.parquet as pq
import pytest
import yaml

from outside import run_outside
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"
STUDIES = ("first_gpu", "hyperparameters", "leverage", "routing_choices", "sectional", "sparsity",
           "transfer")  # fmt: skip
OTHERS = ("domains", "first_gpu_domains", "scores")
MADE_BY = ("--author", "A. Name", "--license", "cc-by-4.0")


@pytest.fixture
def exported(ended, tmp_path):
    """The published tables as a data set."""
    tables = sorted(EVIDENCE.glob("*.parquet"))
    code, _, error = ended("export", "dataset", *tables, "--to", tmp_path / "set", *MADE_BY)
    assert code == 0, error
    return tmp_path / "set"


def front_matter(folder):
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front)


def test_the_card_names_each_table_and_tells_of_each_column(exported):
    front, text = front_matter(exported), (exported / "README.md").read_text()
    assert front["license"] == "cc-by-4.0"
    names = [one["config_name"] for one in front["configs"]]
    assert names == [*sorted([*STUDIES, *OTHERS]), "common"]
    assert "| `D` | int64 | tokens | training tokens |" in text
    assert "| `tokens` | int64 | tokens | training tokens; `D` in the tables of studies |" in text
    assert "The table sparsity has 126 rows, whose losses are trained." in text


def test_common_has_the_runs_of_all_studies_by_names_that_others_use(exported):
    common = pq.read_table(exported / "data/common/train-00000-of-00001.parquet").to_pandas()
    parts = {name: pq.read_table(EVIDENCE / f"{name}.parquet").to_pandas() for name in STUDIES}
    assert len(common) == sum(map(len, parts.values()))
    for name, own in parts.items():
        rows = common[common["study"] == name]
        assert rows["loss"].sum() == own["L"].sum()
        assert rows["params"].tolist() == own["N_total"].tolist()


def test_croissant_describes_the_files_as_they_are(exported):
    data = json.loads((exported / "croissant.json").read_text())
    for file, records in zip(data["distribution"], data["recordSet"], strict=True):
        path = exported / file["contentUrl"]
        assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert [field["name"] for field in records["field"]] == pq.read_schema(path).names


@pytest.mark.parametrize(
    ("names", "folder", "says"),
    [
        (["scores"], ".", "is there already"),
        (["odd name"], "set", "rename odd name"),
        (["common"], "set", "rename one"),
        (["scores", "again/scores"], "set", "rename one"),
        (["damaged"], "set", "cut short"),
    ],
)
def test_what_cannot_be_written_is_refused(ended, tmp_path, names, folder, says):
    (tmp_path / "again").mkdir()
    source = EVIDENCE / "scores.parquet"
    tables = [shutil.copy(source, tmp_path / f"{name}.parquet") for name in names]
    if names == ["damaged"]:
        os.truncate(tables[0], source.stat().st_size - 100)
    code, _, error = ended("export", "dataset", *tables, "--to", tmp_path / folder, *MADE_BY)
    assert (code, says in error) == (2, True), error
    assert not (tmp_path / "set").exists()


@pytest.mark.slow
def test_datasets_loads_it_and_the_evidence_itself(exported, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import get_dataset_config_names, load_dataset

    published = [one["config_name"] for one in front_matter(exported)["configs"]]
    for folder, names in ((exported, published), (EVIDENCE, [*STUDIES, *OTHERS])):
        assert sorted(get_dataset_config_names(str(folder))) == sorted(names)
        for name in names:
            own = folder / f"data/{name}/train-00000-of-00001.parquet"
            table = pq.read_table(own if own.exists() else folder / f"{name}.parquet")
            rows = load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path))
            assert rows.column_names == table.column_names
            assert rows.to_list() == table.to_pylist()


@pytest.mark.slow
def test_mlcroissant_reads_each_table(exported):
    code = """
import json, mlcroissant, sys
data = mlcroissant.Dataset(jsonld=sys.argv[1])
rows = {one.id: [*data.records(record_set=one.id)] for one in data.metadata.record_sets}
print(json.dumps({name: [len(read), sorted(read[0])] for name, read in rows.items()}))
"""
    done = run_outside("mlcroissant", "-c", code, exported / "croissant.json")
    read = json.loads(done.stdout)
    assert sorted(read) == sorted([*STUDIES, *OTHERS, "common"])
    for name, (count, columns) in read.items():
        table = pq.read_table(exported / f"data/{name}/train-00000-of-00001.parquet")
        assert count == table.num_rows
        assert columns == sorted(f"{name}/{column}" for column in table.column_names)

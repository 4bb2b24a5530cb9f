"""An archive holds a finished sweep and its code, and moelaws reads it where it is unpacked."""

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from urllib.parse import unquote

import pytest

from outside import run_outside
from sweep_copy import Copy

pytestmark = pytest.mark.slow


def test_what_is_unpacked_anywhere_can_be_read_and_trains_nothing_again(moved, tmp_path):
    run = moved.summaries()[0].parent.name
    assert moved.moelaws("tag", run, "baseline=yes").returncode == 0
    assert moved.planned() == {}  # a tag reruns nothing
    assert moved.planned("--config", "studies=[sparsity]") == {}
    assert moved.planned("--config", "studies=sparsity") == {}  # however it is spelled
    (moved.root / "src/moelaws/new.yaml").write_text("# in work\n")
    (moved.root / "profiles/slurm/site.yaml").write_text("account: mine")
    unpacked = Copy(tmp_path / "unpacked")
    done = moved.moelaws("archive", "--to", str(tmp_path / "sweep.zip"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "sweep.zip") as packed:
        packed.extractall(unpacked.root)  # without the files' times, which is harder than unzip
    subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=unpacked.root, check=True)
    text = (unpacked.root / "README.txt").read_text()
    assert "snakemake --cores all -n --config 'studies=[\"sparsity\"]'\n" in text
    assert (unpacked.root / "src/moelaws/new.yaml").exists()
    assert not (unpacked.root / "profiles/slurm/site.yaml").exists()
    assert "baseline=yes" in unpacked.moelaws("runs", run).stdout
    assert unpacked.moelaws("show", run).stdout == moved.moelaws("show", run).stdout
    sql = ("query", "SELECT count(*) AS n, min(L) FROM sparsity", "--json")
    assert unpacked.moelaws(*sql).stdout == moved.moelaws(*sql).stdout
    shutil.copytree(moved.root / "text", unpacked.root / "text")  # which no archive holds
    assert "train" not in unpacked.planned("--config", "studies=[sparsity]")
    again = moved.moelaws("archive", "--to", str(tmp_path / "sweep.zip"))
    assert again.returncode == 2
    assert "which exists; --force replaces it" in again.stderr


def test_an_unfinished_or_damaged_sweep_is_not_archived(moved, tmp_path):
    words = ("archive", "--to", str(tmp_path / "sweep.zip"))
    summary = moved.summaries()[0]
    whole = summary.read_text()
    summary.write_text(whole.replace('"steps": ', '"steps": 1'))
    assert "is damaged" in moved.moelaws(*words).stderr
    os.remove(summary)
    done = moved.moelaws(*words)
    assert done.returncode == 2
    assert "is not finished: 1 of " in done.stderr
    assert str(summary.relative_to(moved.root)) in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["moved"]


@pytest.fixture
def crate(moved, tmp_path):
    """An archive, and the entities of its metadata by their identifiers."""
    path = tmp_path / "sweep.zip"
    done = moved.moelaws("archive", "--to", str(path))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(path) as packed:
        graph = json.loads(packed.read("ro-crate-metadata.json"))["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    return path, entities


def referenced(value):
    """The identifiers that an entity refers to."""
    if isinstance(value, list):
        return {one for part in value for one in referenced(part)}
    return {value["@id"]} if isinstance(value, dict) else set()


def test_its_metadata_describe_each_file_and_each_training(crate, moved):
    path, entities = crate
    for entity in entities.values():
        named = {one for value in entity.values() for one in referenced(value)}
        outside = {one for one in named - entities.keys() if one.startswith("http")}
        assert named - outside <= entities.keys()
    with zipfile.ZipFile(path) as packed:
        described = {unquote(i): e for i, e in entities.items() if "sha256" in e}
        assert {*packed.namelist()} - {*described} == {"ro-crate-metadata.json", "SHA256SUMS"}
        for name, entity in described.items():
            content = packed.read(name)
            assert entity["sha256"] == hashlib.sha256(content).hexdigest()
            assert entity["contentSize"] == str(len(content))
    sweep = entities["#sweep"]
    assert sweep["instrument"] == entities["./"]["mainEntity"] == {"@id": "Snakefile"}
    assert {"@id": "results/demo/tables/sparsity.parquet"} in sweep["result"]
    runs = {f"#run-{path.parent.name}" for path in moved.summaries()}
    assert {one["@id"] for one in entities["./"]["mentions"]} == {"#sweep", *runs}
    for run in runs:
        made = {one["@id"].rpartition("/")[2] for one in entities[run]["result"]}
        assert {"summary.json", "history.parquet"} <= made
        assert "actionStatus" not in entities[run]


def test_the_profiles_validator_finds_nothing_wrong(crate):
    path, _ = crate
    wanted = (
        "--profile-identifier",
        "workflow-run-crate-0.5",
        "--requirement-severity",
        "REQUIRED",
    )
    call = ("-c", "from rocrate_validator.cli import cli; cli()", "validate", "--offline")
    done = run_outside("rocrate_validator", *call, "--no-paging", *wanted, path, check=False)
    said = " ".join((done.stdout + done.stderr).split())  # it breaks lines anywhere
    if "cache warm" in said:
        pytest.skip("no cache has RO-Crate's contexts; `rocrate-validator cache warm` first")
    assert done.returncode == 0, said

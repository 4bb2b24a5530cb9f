"""An archive holds a finished sweep and its code, and moelaws reads it where it is unpacked."""

import os
import shutil
import subprocess
import zipfile

import pytest

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

"""An archive, unpacked in a clone of its commit, is a finished sweep to Snakemake."""

import os
import subprocess
import zipfile

import pytest

from sweep_copy import Copy

pytestmark = pytest.mark.slow
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")


def git(root, *words):
    subprocess.run([*GIT, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def committed(moved):
    """A finished sweep in a checkout of its own."""
    git(moved.root, "init", "-q")
    git(moved.root, "add", "-A")
    git(moved.root, "commit", "-qm", "first")
    return moved


def clone_of(copy, to):
    subprocess.run([*GIT, "clone", "-q", copy.root, to], check=True)
    return Copy(to)


def archived(copy, path, *words):
    done = copy.moelaws("archive", *words, "--to", str(path))
    assert done.returncode == 0, done.stderr
    assert copy.moelaws("archive", "--check", str(path)).returncode == 0
    return zipfile.ZipFile(path)


def test_unpacked_in_a_clone_nothing_is_left_to_do(committed, tmp_path):
    run = committed.summaries()[0].parent.name
    assert committed.moelaws("tag", run, "baseline=yes").returncode == 0
    assert committed.planned() == {}  # a tag reruns nothing
    clone = clone_of(committed, tmp_path / "clone")
    with archived(committed, tmp_path / "sweep.zip") as packed:
        packed.extractall(clone.root)  # without the files' times, which is harder than unzip
        text = packed.read("README.txt").decode()
        assert "changes.patch" not in packed.namelist()
    assert "  .venv/bin/snakemake --cores all -n\n" in text
    assert clone.planned() == {}
    assert "baseline=yes" in clone.moelaws("runs", run).stdout
    # What is one study's alone is finished by the command that its archive names.
    assert clone.planned("--config", "studies=[sparsity]", "--", "figures") == {}
    again = committed.moelaws("archive", "--to", str(tmp_path / "sweep.zip"))
    assert again.returncode == 2
    assert "which exists; --force replaces it" in again.stderr


def test_changes_since_the_commit_come_with_it(committed, tmp_path):
    root = committed.root
    clone = clone_of(committed, tmp_path / "clone")
    git(root, "config", "diff.noprefix", "true")  # a user's setting, which no patch may follow
    committed.edit("README.md", r"\A", "Changed.\n")
    (root / "src/moelaws/new.yaml").write_text("# in work\n")
    (root / "notes.txt").write_text("private")
    (root / "src/moelaws/new.bin").write_bytes(bytes(range(256)))
    before = (root / ".git/index").read_bytes()
    with archived(committed, tmp_path / "sweep.zip") as packed:
        (tmp_path / "changes.patch").write_bytes(packed.read("changes.patch"))
    assert (root / ".git/index").read_bytes() == before
    git(clone.root, "apply", str(tmp_path / "changes.patch"))
    for name in ("README.md", "src/moelaws/new.bin", "src/moelaws/new.yaml"):
        assert (clone.root / name).read_bytes() == (root / name).read_bytes()
    assert not (clone.root / "notes.txt").exists()


def test_an_unfinished_sweep_is_not_archived(committed, tmp_path):
    summary = committed.summaries()[0]
    os.remove(summary)
    done = committed.moelaws("archive", "sparsity", "--to", str(tmp_path / "sweep.zip"))
    assert done.returncode == 2
    assert "is not finished: 1 of " in done.stderr
    assert str(summary.relative_to(committed.root)) in done.stderr
    unknown = committed.moelaws("archive", "sparsty", "--to", str(tmp_path / "sweep.zip"))
    assert "did you mean sparsity" in unknown.stderr
    assert not (tmp_path / "sweep.zip").exists()

"""What is on disk is told apart: whole, damaged, stale; and a figure leads back to its runs."""

import json
import shutil

import pytest

from moelaws.records import seal

TABLE = "results/demo/tables/sparsity.parquet"
F7 = "results/demo/figures/sparsity/F7.csv"


def verdicts(copy, code=0):
    done = copy.moelaws("verify", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return {v["path"]: (v["state"], v["reason"]) for v in json.loads(done.stdout)}


def test_all_that_the_workflow_makes_is_whole(finished):
    states = verdicts(finished)
    assert {state for state, _ in states.values()} == {"whole"}
    assert {path.split("/")[1] for path in states} == {"runs", "corpora", "demo"}
    assert sum(path.startswith("results/runs/") for path in states) == 24
    shown = finished.moelaws("verify").stdout
    assert shown.splitlines()[0].split() == [
        "whole", "unverified", "unfinished", "stale", "orphaned", "damaged",
    ]  # fmt: skip


@pytest.mark.slow
def test_what_was_damaged_is_named_with_what_makes_it_again(moved):
    """One bit of each kind of file; the chain above a damaged file is stale."""
    root = moved.root / "results"
    run = next(p for p in sorted((root / "runs").iterdir()))
    files = {
        "runs": run / "history.parquet",
        "fits": root / "demo/fits/sparsity/loss.json",
        "draws of fits": root / "demo/fits/sparsity/chinchilla.bootstrap.parquet",
        "derived": root / "demo/derived/sparsity/optima.parquet",
        "figures": moved.root / F7,
        "claims": root / "demo/claims/sparsity.json",
        "corpora": next((root / "corpora").glob("*/train.bin")),
    }
    for path in files.values():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    done = moved.moelaws("verify")
    assert done.returncode == 1
    for kind in files:
        row = next(line for line in done.stdout.splitlines() if line.startswith(kind))
        assert row.split()[-1] == "1", row
    assert f"moelaws runs --retry {run.name}" in done.stdout
    assert "snakemake --cores all --force results/demo/derived/sparsity/optima.parquet" in (
        done.stdout
    )


@pytest.mark.slow
def test_a_hand_edited_loss_reaches_no_table(moved):
    summary = moved.summaries()[0]
    summary.write_text(summary.read_text().replace('"loss": ', '"loss": 1'))
    (moved.root / TABLE).unlink()
    done = moved.snakemake(TABLE, check=False)
    assert done.returncode != 0
    log = (moved.root / "results/logs/demo/tables/sparsity/aggregate.log").read_text()
    assert f"moelaws runs --retry {summary.parent.name}" in log
    assert moved.moelaws("runs", "--retry", summary.parent.name).returncode == 0
    moved.snakemake(TABLE)
    assert seal.inspect(summary)[0] == "whole"


def test_other_inputs_and_other_code_make_a_file_stale(finished):
    """A run trained again with another result; and an edited law, for what evaluates it."""
    summary = finished.summaries()[0]
    before = summary.read_bytes()
    shutil.copy(finished.summaries()[1], summary)
    try:
        state, reason = verdicts(finished)[TABLE]
    finally:
        summary.write_bytes(before)
    assert state == "stale"
    assert f"1 of its 24 runs changed: {summary.parent.name}" in reason
    law = "src/moelaws/laws/chinchilla.py"
    with finished.edited(law, r"\Z", "\nCHANGED = 1\n"):
        states = verdicts(finished)
    stale = {path for path, (state, _) in states.items() if state == "stale"}
    assert "results/demo/fits/sparsity/chinchilla.json" in stale
    assert not {TABLE, "results/demo/fits/sparsity/loss.json"} & stale


def test_what_no_entry_makes_is_orphaned(finished):
    stray = finished.root / "results/demo/figures/sparsity/F99.json"
    shutil.copy(finished.root / "results/demo/figures/sparsity/F7.json", stray)
    try:
        assert verdicts(finished)[str(stray.relative_to(finished.root))][0] == "orphaned"
    finally:
        stray.unlink()


def test_a_figure_leads_back_to_its_runs_their_commit_and_text(finished):
    shown = finished.moelaws("show", "figure", "F7", "--study", "sparsity").stdout
    assert TABLE in shown
    assert "24 runs, as they are" in shown
    data = json.loads(finished.moelaws("show", F7, "--json").stdout)
    assert data["state"] == "whole"
    table = next(link for link in data["inputs"] if link["path"] == TABLE)
    assert {seal.digest(path) for path in finished.summaries()} == set(table["runs"].values())
    unknown = finished.moelaws("show", "figure", "F99", "--study", "sparsity")
    assert unknown.returncode == 2
    assert "has no figure 'F99'" in unknown.stderr
    assert finished.moelaws("show", "picture", "F7").returncode == 2
    assert finished.moelaws("show", "results/demo/none.parquet").returncode == 2

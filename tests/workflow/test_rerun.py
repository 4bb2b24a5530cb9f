"""A finished small sweep: only what changed runs again, and what is on disk is told apart.

One file, so that one worker makes the sweep for all of these tests.
"""

import json
import os
import shutil
import time

import pyarrow.parquet as pq
import pytest

from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json

pytestmark = pytest.mark.slow

STUDY = "src/moelaws/studies/sparsity"
TABLE = "results/demo/tables/sparsity.parquet"
F7 = "results/demo/figures/sparsity/F7.csv"


def fits_of(copy, law):
    return [fit["name"] for fit in copy.study()["fits"] if fit["law"] == law]


def test_everything_is_there(finished):
    assert len(finished.summaries()) == 18
    table = pq.read_table(finished.root / TABLE)
    assert table.num_rows == 18
    assert table.schema.field("L").metadata[b"unit"] == b"nats/token"
    for figure in finished.study()["figures"]:
        for suffix in ("pdf", "png", "csv"):
            path = finished.root / f"results/demo/figures/sparsity/{figure['name']}.{suffix}"
            assert path.stat().st_size > 0
    report = (finished.root / "results/demo/report.html").read_text()
    assert "F1a" in report
    assert "18 of 18 runs done, 100% of the FLOPs" in finished.shown
    assert finished.planned() == {}


def test_new_time_stamps_and_another_readme_rerun_nothing(finished):
    """Touching files, or checking them out again, changes no content."""
    now = time.time() + 5
    for path in finished.root.rglob("*"):
        if path.is_file() and not {"results", ".snakemake"} & {*path.parts}:
            os.utime(path, (now, now))
    with finished.edited("README.md", r"\A", "One more line.\n"):
        assert finished.planned() == {}


def test_no_model_is_trained_again_for_workflow_text_or_training_code(finished):
    """Those that other code trained are shown."""
    rules = "workflow/rules/runs.smk"
    with (
        finished.edited(rules, r"exec moelaws", "exec  moelaws"),  # shell text
        finished.edited(rules, r"envs/cpu.yaml", "envs/gpu.yaml"),  # conda: line
        finished.edited(rules, r"\A", "# A comment.\n"),
        finished.edited("envs/cpu.yaml", r"python=3.11", "python=3.12"),
        finished.edited("src/moelaws/training/loop.py", r"\Z", "\n# Changed.\n"),
    ):
        assert "train" not in finished.planned()
        assert "18 runs" in finished.moelaws("runs", "--stale").stdout
    assert "\n0 runs" in finished.moelaws("runs", "--stale").stdout


@pytest.mark.parametrize("law", ["sparsity.loss", "sparsity.isoflop"])
def test_a_laws_module_edited_reruns_its_fits_and_their_figures(finished, law):
    fits = fits_of(finished, law)
    with finished.edited(f"{STUDY}/laws/{law.partition('.')[2]}.py", r"\Z", "\n# Edited.\n"):
        planned = finished.planned()
    assert planned["fit"] == len(fits)
    assert planned["draw"] == 1
    assert planned["place_figure"] > 0
    assert not {"train", "aggregate", "prepare_corpus"} & set(planned)


def test_a_fits_protocol_edited_reruns_that_fit_and_its_figures(finished):
    reports = [f"results/demo/fits/sparsity/{n}.json" for n in fits_of(finished, "chinchilla")]
    with finished.edited(
        "config/studies/sparsity.yaml", r"(law: chinchilla\n)", r"\1  rows: S <= 0.6\n"
    ):
        assert finished.planned("figures", *reports)["fit"] == 1


def test_a_figures_code_edited_calls_for_a_new_drawing_alone(finished):
    with finished.edited(f"{STUDY}/figures/optima.py", r"\Z", "\n# Edited.\n"):
        planned = finished.planned("figures")
    assert planned.keys() == {"figures", "draw", "place_figure", "place_table"}


def test_two_studies_share_a_run(finished):
    study = finished.study()
    study.update(study="twin", title="The same runs")
    study |= {kind: [] for kind in ("fits", "derived", "figures", "tables", "claims")}
    finished.write_study(study)
    try:
        planned = finished.planned("tables", "--config", "studies=sparsity,twin")
    finally:
        (finished.root / "config/studies/twin.yaml").unlink()
    assert planned == {"tables": 1, "aggregate": 1}


def test_one_grid_point_more_trains_one_run_and_refits_where_snakemake_remembers_nothing(moved):
    shutil.rmtree(moved.root / ".snakemake")  # as people do to get rid of a lock
    assert "train" not in moved.planned()
    study = moved.study()
    study["grids"]["demo"]["sweeps"].append({"axes": {"C": 4e8, "S": 0.5, "d_model": 8, "seed": 1}})
    moved.write_study(study)
    before = {path: path.stat().st_mtime_ns for path in moved.summaries()}
    planned = moved.planned()
    assert planned["train"] == 1
    assert planned["fit"] == len(study["fits"])
    *_, last, _ = moved.snakemake("tables").stderr.splitlines()
    assert "19 of 19 runs done, 100% of the FLOPs" in last  # though the run ended a moment before
    after = moved.summaries()
    assert len(after) == 19
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert moved.planned("tables") == {}


def test_a_corpus_that_is_gone_is_not_wanted_by_finished_runs(finished):
    (meta,) = finished.root.glob("results/corpora/*/meta.json")
    aside = meta.parent.rename(finished.root / "aside")
    try:
        assert "train" not in finished.planned()
    finally:
        aside.rename(meta.parent)


# ---- what is on disk: whole, damaged, stale; and a figure leads back to its runs


def verdicts(copy, code=0):
    done = copy.moelaws("verify", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return {v["path"]: (v["state"], v["reason"]) for v in json.loads(done.stdout)}


def test_all_that_the_workflow_makes_is_whole(finished):
    states = verdicts(finished)
    assert {state for state, _ in states.values()} == {"whole"}
    kinds = {"runs", "corpora", "demo", "preregistered"}  # the last in config/
    assert {path.split("/")[1] for path in states} == kinds
    assert sum(path.startswith("results/runs/") for path in states) == 18


def test_what_was_damaged_is_named_with_what_makes_it_again(moved):
    """One bit of each kind of file; the chain above a damaged file is stale."""
    root = moved.root / "results"
    run = min((root / "runs").iterdir())
    files = {
        "runs": run / "history.parquet",
        "fits": root / "demo/fits/sparsity/loss.json",
        "draws of fits": root / "demo/fits/sparsity/chinchilla.bootstrap.parquet",
        "derived": root / "demo/derived/sparsity/optima.parquet",
        "figures": moved.root / F7,
        "claims": root / "demo/claims/sparsity.json",
        "pages": root / "demo/report.html",
        "contests": root / "demo/contests/sparsity/laws.json",
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


def test_a_hand_edited_loss_reaches_no_table(moved):
    summary = moved.summaries()[0]
    summary.write_text(summary.read_text().replace('"loss": ', '"loss": 1'))
    (moved.root / TABLE).unlink()
    done = moved.snakemake(TABLE, check=False)
    assert done.returncode != 0
    assert f"moelaws runs --retry {summary.parent.name}" in done.stderr
    assert moved.moelaws("runs", "--retry", summary.parent.name).returncode == 0
    moved.snakemake(TABLE)
    assert seal.inspect(summary)[0] == "whole"


def test_other_inputs_and_other_code_make_a_file_stale(finished):
    """A run trained again with another result; and an edited law, for what evaluates it."""
    summary = finished.summaries()[0]
    before = summary.read_bytes()
    write_json(summary, read_json(summary) | {"loss": 3.0})
    try:
        state, reason = verdicts(finished)[TABLE]
    finally:
        summary.write_bytes(before)
    assert state == "stale"
    assert f"1 of its 18 runs changed: {summary.parent.name}" in reason
    law = "src/moelaws/laws/chinchilla.py"
    with finished.edited(law, r"\Z", "\nCHANGED = 1\n"):
        states = verdicts(finished)
    stale = {path for path, (state, _) in states.items() if state == "stale"}
    assert "results/demo/fits/sparsity/chinchilla.json" in stale
    assert not {TABLE, "results/demo/fits/sparsity/loss.json"} & stale


def test_what_no_entry_makes_is_orphaned(finished):
    stray = finished.root / "results/demo/figures/sparsity/F99.json"
    write_json(stray, read_json(stray.with_name("F7.json")))
    try:
        assert verdicts(finished)[str(stray.relative_to(finished.root))][0] == "orphaned"
    finally:
        stray.unlink()


def test_a_figure_leads_back_to_its_runs_their_commit_and_text(finished):
    shown = finished.moelaws("show", F7).stdout
    assert TABLE in shown
    assert "18 runs, as they are" in shown
    data = json.loads(finished.moelaws("show", F7, "--json").stdout)
    assert data["state"] == "whole"
    table = next(link for link in data["inputs"] if link["path"] == TABLE)
    assert {seal.digest(path) for path in finished.summaries()} == set(table["runs"].values())
    unknown = finished.moelaws("make", "figures", "sparsity", "F99")
    assert unknown.returncode == 2
    assert "has no figure 'F99'" in unknown.stderr
    assert finished.moelaws("show", "results/demo/none.parquet").returncode == 2

"""Only what changed runs again: decided by Snakemake itself, on a finished small sweep."""

import json
import os
import subprocess
import time

import pyarrow.parquet as pq
import pytest

from moelaws.records.files import read_json, write_json

STUDY = "src/moelaws/studies/sparsity"


def fits_of(copy, law):
    return [fit["name"] for fit in copy.study()["fits"] if fit["law"] == law]


def users_of(copy, fits):
    """How many derived tables and figures use one of these fits, directly or by a table."""
    study = copy.study()
    derived = {d["name"] for d in study["derived"] if set(d.get("fits", ())) & set(fits)}
    figures = [
        f["name"]
        for f in study["figures"]
        if set(f.get("fits", ())) & set(fits) or set(f.get("derived", ())) & derived
    ]
    return len(derived), len(figures)


def test_everything_is_there(finished):
    assert len(finished.summaries()) == 24
    table = pq.read_table(finished.root / "results/demo/tables/sparsity.parquet")
    assert table.num_rows == 24
    assert table.schema.field("L").metadata[b"unit"] == b"nats/token"
    for figure in finished.study()["figures"]:
        for suffix in ("pdf", "png", "csv"):
            path = finished.root / f"results/demo/figures/sparsity/{figure['name']}.{suffix}"
            assert path.stat().st_size > 0
    report = (finished.root / "results/demo/report.html").read_text()
    assert "F1a" in report


def test_progress_is_shown(finished):
    assert "24/24 runs, 100% of the FLOPs" in finished.first.stderr


def test_nothing_to_do_after_a_full_run(finished):
    assert finished.planned() == {}


def test_a_project_that_was_copied_elsewhere_is_as_finished(moved):
    assert moved.planned() == {}


def test_new_time_stamps_rerun_nothing(finished):
    """Touching files, or checking them out again, changes no content."""
    now = time.time() + 5
    names = [p for p in finished.root.rglob("*") if "results" not in p.parts and p.is_file()]
    for path in names:
        if ".snakemake" not in path.parts:
            os.utime(path, (now, now))
    assert finished.planned() == {}


def test_readme_edit_reruns_nothing(finished):
    with finished.edited("README.md", r"\A", "One more line.\n"):
        assert finished.planned() == {}


@pytest.mark.parametrize(
    ("file", "pattern", "replacement"),
    [
        ("workflow/rules/runs.smk", r"exec \{TRAIN", "exec  {TRAIN"),  # shell text
        ("workflow/rules/runs.smk", r"envs/cpu.yaml", "envs/gpu.yaml"),  # conda: line
        ("workflow/rules/runs.smk", r"\A", "# A comment.\n"),
        ("envs/cpu.yaml", r"python=3.11", "python=3.12"),
    ],
)
def test_no_model_is_trained_again_for_workflow_text(finished, file, pattern, replacement):
    with finished.edited(file, pattern, replacement):
        assert "train" not in finished.planned()


def test_training_code_edit_trains_nothing_and_is_shown(finished):
    with finished.edited("src/moelaws/training/loop.py", r"\Z", "\n# Changed.\n"):
        assert "train" not in finished.planned()
        assert "24 runs" in finished.moelaws("runs", "--stale").stdout
    assert "\n0 runs" in finished.moelaws("runs", "--stale").stdout


@pytest.mark.parametrize("law", ["sparsity.loss", "sparsity.isoflop"])
def test_a_laws_module_edited_reruns_its_fits_and_their_figures(finished, law):
    fits = fits_of(finished, law)
    derived, figures = users_of(finished, fits)
    with finished.edited(f"{STUDY}/laws/{law.partition('.')[2]}.py", r"\Z", "\n# Edited.\n"):
        planned = finished.planned()
    assert planned["fit"] == len(fits)
    assert planned.get("derive", 0) >= derived
    assert figures <= planned["draw"]
    assert not {"train", "aggregate", "prepare_corpus"} & set(planned)


def test_a_fits_protocol_edited_reruns_that_fit_and_its_figures(finished):
    with finished.edited(
        "config/studies/sparsity.yaml", r"(law: chinchilla\n)", r"\1  rows: S <= 0.6\n"
    ):
        assert finished.planned("figures", *chinchilla(finished))["fit"] == 1


def chinchilla(copy):
    return [f"results/demo/fits/sparsity/{name}.json" for name in fits_of(copy, "chinchilla")]


def test_a_figures_code_edited_redraws_that_figure(finished):
    mine = [f for f in finished.study()["figures"] if f["code"].startswith("figures.flops:")]
    with finished.edited(f"{STUDY}/figures/flops.py", r"\Z", "\n# Edited.\n"):
        assert finished.planned("figures") == {"figures": 1, "draw": len(mine)}


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


def test_one_grid_point_more_trains_one_run_and_refits(moved):
    study = moved.study()
    study["grids"]["demo"]["sweeps"].append({"axes": {"C": 4e8, "S": 0.5, "d_model": 8, "seed": 1}})
    moved.write_study(study)
    before = {path: path.stat().st_mtime_ns for path in moved.summaries()}
    planned = moved.planned()
    assert planned["train"] == 1
    assert planned["fit"] == len(study["fits"])
    moved.snakemake("tables")
    after = moved.summaries()
    assert len(after) == 25
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert moved.planned("tables") == {}


@pytest.mark.slow
def test_a_run_that_lacked_memory_is_tried_again(moved):
    sweep = json.loads(moved.moelaws("grid", "sparsity", "--json").stdout)
    summary = moved.root / f"results/runs/{sweep[0]['run_id']}/summary.json"
    write_json(summary, read_json(summary) | {"status": "out_of_memory"})
    summary.with_name("lacked_memory.json").write_text("{}")  # as the trainer leaves it
    assert moved.planned()["train"] == 1
    moved.snakemake("tables")
    assert json.loads(summary.read_text())["status"] == "completed"
    assert moved.planned("tables") == {}


def test_a_corpus_that_is_gone_is_not_wanted_by_finished_runs(finished):
    (meta,) = finished.root.glob("results/corpora/*/meta.json")
    subprocess.run(["mv", meta.parent, finished.root / "aside"], check=True)
    try:
        assert "train" not in finished.planned()
    finally:
        subprocess.run(["mv", finished.root / "aside", meta.parent], check=True)

"""``moelaws speed``: runs on record, JSON files and a study's grid, side by side."""

import json
from functools import partial

import pandas as pd
import pytest

from command_line import printed
from moelaws.files.layout import Results
from moelaws.files.parquet import read_origin
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig

STUDY = """
study: widths
title: How wide
package: moelaws.studies.sparsity  # nothing of it is read; another one would join this process
grids:
  demo:
    settings: {context: 8, vocab_size: 300, n_layers: 1, n_heads: 2, n_kv: 2, d_ffn: 8, ffn: dense,
               batch: 2, lr: 0.01, steps: 2, evaluation_sequences: 2}
    sweeps:
      - {name: narrow, axes: {d_model: [8], seed: [0, 1]}}
      - {name: wide, axes: {d_model: [16, 32], lr: [0.01, 0.1]}}
"""


@pytest.fixture
def root(project_folder, run_data):
    """A folder with a run on record, a file of a configuration and a project."""
    root = project_folder
    (root / "text.txt").write_text("a text\n" * 1000)
    run_data["model"]["context"] = 8
    (root / "moe.json").write_text(json.dumps(run_data))
    run_data["model"]["ffn"] = {"kind": "dense", "d_ffn": 16}
    config = parse(RunConfig, run_data, "test")
    folder = Results(root / "results").run(config.run_id)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config.canonical_json())
    (root / "study.yaml").write_text(STUDY)
    return root


speed = partial(printed, "speed", "--repeats", "2", "--device", "cpu")
of_study = partial(speed, "--study", "study.yaml", "--set", "corpus=text.txt")


def test_a_run_and_a_file_are_compared_with_the_first_of_them(root, run_data):
    run_id = parse(RunConfig, run_data, "test").run_id
    out = json.loads(speed(run_id[:6], "moe.json", "--json", "--out", "speed.parquet"))
    first, second = out["speeds"]
    assert (first["run_id"], first["kind"], second["kind"], second["E"]) == (
        run_id, "dense", "moe", 8,
    )  # fmt: skip
    assert first["time_ratio"] == 1
    assert first["gpu_step_bytes"] is None
    frame = pd.read_parquet("speed.parquet")
    assert list(frame["run_id"]) == [first["run_id"], second["run_id"]]
    assert set(read_origin(root / "speed.parquet")["files"]) == {
        f"results/runs/{run_id}/config.json", "moe.json",
    }  # fmt: skip


def test_a_study_gives_one_run_of_each_architecture(root):
    widths = [row["d_model"] for row in json.loads(of_study("--json"))["speeds"]]
    assert widths == [8, 16, 32]
    rows = json.loads(of_study("--json", "moe.json"))["speeds"]
    assert [row["kind"] for row in rows] == ["moe", "dense", "dense", "dense"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to measure: name runs, JSON files or --study STUDY"),
        (["--study", "routing"], "the study imports its runs"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(root, words, message):
    with pytest.raises(UserError, match=message):
        speed(*words, "--set", "corpus=text.txt")

"""Runs on record to export: two that were trained, and made copies of them in other states."""

import shutil

import pytest
from export_records import copy_run, id_of, replace_column

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.training.plan import TrainingOptions
from moelaws.training.run import train
from random_corpus import EXPERTS, random_corpus, run_of


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The root of results with a completed run of experts and one of a dense model."""
    root = tmp_path_factory.mktemp("trained")
    corpus, folder = random_corpus(root)
    results = Results(root / "results")
    for ffn in (EXPERTS, {"kind": "dense", "d_ffn": 16}):
        config, lines = run_of(corpus, {"ffn": ffn}), []
        train(config, results, folder, TrainingOptions(), log=lines.append)
        (results.run(config.run_id) / "log").write_text("".join(f"{line}\n" for line in lines))
    return results.root


@pytest.fixture
def results(trained, tmp_path):
    """A copy of these runs, beside them a copy that diverged and one that lacked memory."""
    results = Results(tmp_path / "results")
    shutil.copytree(trained / "runs", results.runs)
    experts = id_of(results, "moe")
    copy_run(results, experts, "diverged", status="diverged", loss=None, bits_per_byte=None)
    path = results.run("diverged") / "history.parquet"
    losses = read_parquet(path)["loss"].to_pylist()
    losses[-2:] = [float("inf"), float("nan")]
    replace_column(path, "loss", losses)
    copy_run(results, experts, "lacking", status="out_of_memory", loss=None)
    return results

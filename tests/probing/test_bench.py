"""`moelaws bench`: a run's scores as a table of their own, and what it refuses."""

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from command_line import printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.files.parquet import read_origin
from moelaws.spec.errors import UserError
from moelaws.tables.query import query
from random_corpus import keep_weights, random_corpus, run_of

STEPS, AT = 8, 3


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """(results, configuration) of a run whose weights were kept at a step and at the end."""
    root = tmp_path_factory.mktemp("bench")
    corpus, _ = random_corpus(root)
    results = Results(root / "results")
    ffn = {"kind": "dense", "d_ffn": 16}
    model = {"n_layers": 1, "n_kv": 2, "context": 64, "init_std": 0.3, "ffn": ffn}
    config = run_of(corpus, model, steps=STEPS, batch=2)
    keep_weights(results, config, {AT: 5, None: 6})
    return results, config


def bench(results, *words):
    return printed("bench", *words, "--results", results.root)


def test_a_row_for_each_task_and_kept_step_with_units(tree):
    results, config = tree
    path = results.scores(config.run_id)
    assert "continuation_4" in bench(results, config.run_id)
    assert not path.exists()  # without --out nothing is written over the sweep's scores
    out = json.loads(bench(results, config.run_id[:5], "--json", "--out", path))
    assert out["file"] == str(path)
    frame = pd.read_parquet(path)
    assert sorted(frame["step"].unique()) == [AT, STEPS]
    answer = query(f"SELECT task FROM scores WHERE run_id = '{config.run_id}'", results, "demo")
    assert len(answer.rows) == len(frame)
    assert (frame["tokens"] == frame["step"] * config.batch * config.model.context).all()
    assert frame["task"].nunique() * 2 == len(frame) == len(out["scores"])
    assert set(frame["group"]) == {"continuation"}
    # The two steps have different weights.
    assert frame.groupby("task")["bits_per_byte"].nunique().eq(2).all()
    schema = pq.read_schema(path)
    assert schema.field("bits_per_byte").metadata[b"unit"] == b"bits/byte"
    assert list(read_origin(path)["files"]) == [str(results.kept(config.run_id))]


def test_a_task_file_gives_the_scores_of_the_tasks_it_was_written_from(tree, tmp_path):
    results, config = tree
    bench(results, config.run_id, "--out", tmp_path / "made.parquet")
    made = pd.read_parquet(tmp_path / "made.parquet")
    corpus, file = results.corpus(config.corpus.corpus_id), tmp_path / "t.jsonl"
    printed("tasks", "held-out", "--corpus", corpus, "--out", file)
    out = tmp_path / "scores.parquet"
    text = bench(results, config.run_id, "--tasks", file, "--out", out)
    assert "continuation_16" in text
    pd.testing.assert_frame_equal(pd.read_parquet(out), made)


def test_a_run_without_weights_leaves_an_empty_table_and_one_that_kept_none_says_how(tree):
    results, config = tree
    other = "0123456789abcdef"
    results.run(other).mkdir(parents=True)
    (results.run(other) / "config.json").write_text(config.canonical_json())
    write_json(results.kept(other), {"status": "diverged"})
    assert "diverged" in bench(results, other, "--out", results.scores(other))
    assert pd.read_parquet(results.scores(other)).empty
    results.kept(other).unlink()
    with pytest.raises(UserError, match="keep_weights"):
        bench(results, other)
    with pytest.raises(UserError, match="no such run"):
        bench(results, "ffff")

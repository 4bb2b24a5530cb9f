"""lm-evaluation-harness on an export gives the scores that `moelaws bench` gives the run."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.exports.hf.folder import export
from moelaws.files.layout import TOKENIZER
from moelaws.probing.bench import score
from moelaws.tasks.harness import write_for_harness
from moelaws.tasks.held_out import held_out_items
from moelaws.tasks.item import Item, by_task
from moelaws.training import weights
from optional_package import need

ITEMS = 24  # of each task


@pytest.fixture(scope="module")
def questions(config, corpus):
    """(items of each task, ours) of a trained run, with a question that has no context."""
    _, results = corpus
    folder = results.corpus(config.corpus.corpus_id)
    tasks = by_task(held_out_items(PreparedCorpus.open(folder)))
    items = [item for of_task in tasks.values() for item in of_task[:ITEMS]]
    items.append(Item(task="bare", id="0", context="", choices=("ab cd", " ef"), answer=0))
    items.append(Item(task="bare", id="1", context="abc de" * 60, choices=(" f", " gh"), answer=1))
    _, model = weights.load(results.weights(config.run_id))
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    return by_task(items), score(model, tokenizer, items, config.model.context)


def test_the_harness_gives_our_numbers(config, corpus, questions, tmp_path, monkeypatch):
    for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    need("lm_eval", __file__)
    import lm_eval
    from lm_eval.tasks import TaskManager

    _, results = corpus
    export(results, config.run_id, tmp_path / "exported")
    tasks, ours = questions
    write_for_harness(tmp_path / "tasks", [item for of_task in tasks.values() for item in of_task])
    theirs = lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(tmp_path / "exported")},
        tasks=list(tasks),
        task_manager=TaskManager(include_path=str(tmp_path / "tasks")),
        device="cpu",
        batch_size=8,
        log_samples=True,
        bootstrap_iters=0,
    )
    assert len(ours) == len(tasks)
    for scored in ours:
        result = theirs["results"][scored["task"]]
        assert result["acc,none"] == pytest.approx(scored["accuracy"])
        assert result["acc_bytes,none"] == pytest.approx(scored["accuracy_per_byte"])
        bits = []
        for sample in theirs["samples"][scored["task"]]:
            nats = [float(answer[0][0]) for answer in sample["resps"]]
            choice = sample["doc"]["choices"][sample["doc"]["answer"]]
            bits.append(-nats[sample["doc"]["answer"]] / math.log(2) / len(choice.encode()))
        assert np.mean(bits) == pytest.approx(scored["bits_per_byte"], rel=1e-5)


def test_each_task_is_a_file_of_its_own_that_names_its_questions(questions, tmp_path):
    tasks, _ = questions
    items = [item for of_task in tasks.values() for item in of_task]
    for file in write_for_harness(tmp_path / "new", items):
        about = yaml.safe_load(file.read_text())
        lines = Path(about["dataset_kwargs"]["data_files"]["test"]).read_text().splitlines()
        assert len(lines) == len(tasks[about["task"]])
        first, item = json.loads(lines[0]), tasks[about["task"]][0]
        assert first["context"] + first["choices"][first["answer"]] == (
            item.context + item.choices[item.answer]
        )

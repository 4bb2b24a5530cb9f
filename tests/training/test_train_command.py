"""``moelaws train`` as a user meets it."""

import json

import pytest
import torch

from repository import moelaws


def test_from_a_file_to_one_line_and_again(configure, results, corpus, tmp_path):
    config = configure(steps=3)
    path = tmp_path / "config.json"
    path.write_text(config.canonical_json())
    words = ("train", path, "--results", results.root, "--corpus", corpus[1])
    done = moelaws(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{config.run_id} completed: loss ")
    assert "nats/token" in done.stdout
    assert "bits/byte" in done.stdout
    assert "back end torch on cpu" in done.stderr
    again = moelaws(*words, "--json")
    assert json.loads(again.stdout)["run_id"] == config.run_id
    assert again.stderr == ""
    results.summary(config.run_id).unlink()
    words = ("train", config.run_id[:6], "--results", results.root, "--corpus", corpus[1])
    by_its_id = moelaws(*words, "--json")
    assert json.loads(by_its_id.stdout)["run_id"] == config.run_id, by_its_id.stderr
    assert results.summary(config.run_id).exists()


def test_a_deterministic_run_meets_no_operation_that_torch_refuses(configure, results, corpus):
    text = configure(steps=3).canonical_json()
    words = ("train", "-", "--results", results.root, "--corpus", corpus[1], "--deterministic")
    try:
        done = moelaws(*words, input=text)
        refused = moelaws(*words, "--backend", "megablocks", input=text)
    finally:
        torch.use_deterministic_algorithms(False)
    assert done.returncode == 0, done.stderr
    assert (refused.returncode, "promises no equal bits" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["standard input", "not valid JSON"]),
        ("[]", ["standard input"]),
        ('{"stepz": 3}', ["unknown key stepz", "steps"]),
    ],
)
def test_a_bad_configuration_and_a_missing_file_are_one_clear_message(tmp_path, text, words):
    done = moelaws("train", "-", input=text)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    done = moelaws("train", tmp_path / "none.json")
    assert (done.returncode, "none.json: no such file" in done.stderr) == (2, True)

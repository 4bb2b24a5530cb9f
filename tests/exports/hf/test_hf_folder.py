"""The folder of an export: whole or not there, and never in the place of anything else."""

import json
import os
import re
from functools import partial

import pytest
import yaml

from command_line import printed
from exported_models import DENSE, EXPERTS
from full_disk import files_of_at_most
from killed import killed_at
from moelaws.corpus.shards import file_record
from moelaws.exports.hf.folder import MARK, export
from moelaws.files.atomic import read_json, write_json
from moelaws.spec.errors import UserError


@pytest.fixture
def write(corpus, config):
    """Exports the trained run."""
    return partial(export, corpus[1], config.run_id)


def is_whole(folder):
    """Whether a folder has every file that its mark names, as it was written, and no other."""
    files = read_json(folder / MARK)["files"]
    assert {name: file_record(folder / name) for name in files} == files
    return sorted([*files, MARK]) == sorted(os.listdir(folder))


def test_the_command_writes_the_folder(corpus, config, tmp_path):
    folder = tmp_path / "not" / "there" / "yet"
    words = ["export", "hf", config.run_id[:9], "--to", folder, "--results", corpus[1].root]
    answer = json.loads(printed(*words, "--json"))
    assert set(os.listdir(folder)) == {
        "README.md", "config.json", "generation_config.json", "model.safetensors", MARK,
        "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    assert is_whole(folder)
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1  # who reads one reads all
    assert answer["run_id"] == config.run_id
    assert answer["architecture"] == "Qwen3MoeForCausalLM"
    assert answer["bytes"] == sum(answer["files"].values())
    assert answer["files"]["config.json"] == (folder / "config.json").stat().st_size


def test_the_card_tells_what_was_measured(corpus, config, write, tmp_path):
    write(tmp_path / "out")
    _, heading, text = (tmp_path / "out/README.md").read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(heading)["library_name"] == "transformers"
    summary = read_json(corpus[1].summary(config.run_id))
    loss, error = re.search(r"held-out loss \| ([\d.]+) ± ([\d.]+) nats/token", text).groups()
    assert float(loss) == pytest.approx(summary["loss"], rel=1e-4)
    assert float(error) == pytest.approx(summary["loss_se"], rel=0.05)
    bits, of_bits = re.search(r"per byte \| ([\d.]+) ± ([\d.]+) bits/byte", text).groups()
    assert float(bits) == pytest.approx(summary["bits_per_byte"], rel=1e-4)
    assert float(of_bits) / float(bits) == pytest.approx(float(error) / float(loss), rel=0.1)
    provenance = read_json(corpus[1].run(config.run_id) / "provenance.json")
    for said in (config.run_id, config.corpus.corpus_id, config.corpus.source.digest):
        assert said in text
    assert f"| `code.moelaws` | {provenance['moelaws']} |" in text
    assert (provenance["commit"] or "") in text
    assert provenance["host"] not in text


def test_what_is_no_export_of_the_run_stays(corpus, trained, config, write, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write(folder)  # an empty one may be filled
    other = trained(steps=2, ffn=DENSE)
    with pytest.raises(UserError, match=f"holds the export of run {config.run_id}"):
        export(corpus[1], other.run_id, folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"other files \(notes.txt\), which would be lost"):
        write(folder)
    (folder / MARK).unlink()
    with pytest.raises(UserError, match="files that are no export of a run"):
        write(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    with pytest.raises(UserError, match="which is a file"):
        write(folder / "notes.txt")


@pytest.mark.parametrize("size", [100, 15_000])
def test_a_full_disk_leaves_the_earlier_export(write, tmp_path, size):
    folder = tmp_path / "out"
    write(folder)
    with files_of_at_most(size), pytest.raises(UserError, match="cannot be written"):
        write(folder)
    assert is_whole(folder)
    assert os.listdir(tmp_path) == ["out"]


def test_a_kill_anywhere_leaves_no_half_export(write, tmp_path):
    point, killed = 0, True
    while killed:
        folder = tmp_path / str(point) / "out"
        write(folder)
        killed = killed_at(point, partial(write, folder))
        assert is_whole(folder)
        write(folder)
        assert is_whole(folder)
        assert os.listdir(folder.parent) == ["out"]
        point += 1
    assert point > 4


def test_a_run_that_fits_nothing_or_left_no_weights_is_refused(corpus, trained, tmp_path):
    config = trained(steps=2, ffn=EXPERTS | {"n_shared": 1})
    with pytest.raises(UserError, match=f"run {config.run_id} cannot be exported.*n_shared is 1"):
        export(corpus[1], config.run_id, tmp_path / "out")
    kept = corpus[1].kept(config.run_id)
    write_json(kept, {"status": "diverged"})
    with pytest.raises(UserError, match="ended as diverged and left no weights"):
        export(corpus[1], config.run_id, tmp_path / "out")
    kept.unlink()
    with pytest.raises(UserError, match="weights are kept of the runs that a study's keep_weights"):
        export(corpus[1], config.run_id, tmp_path / "out")
    assert os.listdir(tmp_path) == []

"""Writes the folder of an exported run, whole or not at all, and never over other files."""

import json
import os
from pathlib import Path

from moelaws import __version__
from moelaws.corpus.shards import PreparedCorpus, file_record
from moelaws.exports.hf import architecture, card, tokenizer, weights
from moelaws.files.atomic import read_json, replacing_folder, write_json
from moelaws.files.layout import TOKENIZER, WEIGHTS, Results
from moelaws.records.summary import read_summary
from moelaws.records.tensors import config_of, read_kept
from moelaws.spec.errors import UserError, located
from moelaws.training.weights import load

ENDS = ("bos_token_id", "eos_token_id", "pad_token_id")
MARK = "moelaws.json"  # names the run that was exported, and every file with its SHA-256


def export(results: Results, run_id: str, folder: Path) -> tuple[str, dict[str, int]]:
    """Writes the kept weights of a run to ``folder`` in the layout of Hugging Face.

    An earlier export of the same run is replaced. Returns the class of transformers, and the bytes
    of each file. Raises UserError where no weights are kept, no architecture of transformers fits,
    the corpus is not there, or ``folder`` holds something else or cannot be written.
    """
    if (status := read_kept(results.weights(run_id)).status) != "completed":
        raise UserError(
            f"run {run_id} ended as {status} and left no weights; only a completed run can be "
            "exported"
        )
    summary = read_summary(results.summary(run_id))
    folder = folder.resolve()
    check_folder(folder, run_id)
    run = config_of(results.weights(run_id) / WEIGHTS)
    with located(f"run {run_id} cannot be exported"):
        fitting = architecture.architecture_of(run.model)
    text = results.corpus(run.corpus.corpus_id)
    if PreparedCorpus.open(text, training=False).corpus != run.corpus:
        raise UserError(f"{text} is not the corpus of run {run_id}")
    vocabulary = read_json(text / TOKENIZER)
    _, model = load(results.weights(run_id))
    provenance = read_json(results.run(run_id) / "provenance.json")
    end = run.model.vocab_size - 1
    with replacing_folder(folder) as work:
        weights.write(work, weights.convert(run.model, fitting, model.state_dict()))
        for name, data in {
            "config.json": architecture.config(run.model),
            # The token that ends a document begins a text and pads a batch, too
            "generation_config.json": dict.fromkeys(ENDS, end),
            "tokenizer.json": tokenizer.tokenizer(vocabulary, end),
            "tokenizer_config.json": tokenizer.tokenizer_config(vocabulary, run.model.context),
        }.items():
            (work / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
        end_text = tokenizer.end_of_document_text(vocabulary)
        page = card.card(run, summary, provenance, fitting.name, end_text)
        (work / "README.md").write_text(page, "utf-8")
        files = {path.name: file_record(path) for path in sorted(work.iterdir())}
        write_json(
            work / MARK,
            {
                "run_id": run_id,
                "architecture": fitting.name,
                "moelaws": __version__,
                "config": run.model_dump(mode="json"),
                "files": files,
            },
        )
    return fitting.name, {name: int(record["bytes"]) for name, record in files.items()}


def check_folder(folder: Path, run_id: str) -> None:
    """Refuses a place for the export that holds anything but an earlier export of the run."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"--to is {str(folder)!r}, which is a file; give the name of a folder")
    names = set(os.listdir(folder))
    if not names:
        return
    other = "choose an empty or new folder"
    if MARK not in names:
        raise UserError(f"{folder} holds files that are no export of a run; {other}")
    mark = read_json(folder / MARK)
    if mark.get("run_id") != run_id:
        raise UserError(f"{folder} holds the export of run {mark.get('run_id')}; {other}")
    if foreign := sorted(names - mark["files"].keys() - {MARK}):
        raise UserError(
            f"{folder} holds an export of this run and other files ({', '.join(foreign[:3])}), "
            f"which would be lost; move them away, or {other}"
        )

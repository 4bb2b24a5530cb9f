"""Scores one run's kept weights, at the end and at the steps that were kept, to Parquet."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files.layout import TOKENIZER
from moelaws.probing.scores import score
from moelaws.records.tensors import read_kept
from moelaws.spec.errors import UserError
from moelaws.tasks.item import Item
from moelaws.training import columns, weights
from moelaws.training.device import choose_device, threads

# column -> (unit, description)
COLUMNS = {
    "step": ("steps", "optimizer steps behind the weights"),
    "tokens": ("tokens", "training tokens behind the weights"),
    "task": ("", "name of the task"),
    "group": ("", "kind of skill that it asks for"),
    "items": ("items", "questions of the task"),
    "documents": ("", "documents behind them: what the standard errors count"),
    "chance": ("1", "accuracy of guessing; 0 of a task whose answer must be produced"),
    "accuracy": ("1", "share of the items whose right answer has the highest probability"),
    "accuracy_se": ("1", "its standard error"),
    "accuracy_per_byte": ("1", "the same by the probability for each byte of a choice"),
    "accuracy_per_byte_se": ("1", "its standard error"),
    "bits_per_byte": ("bits/byte", "of the right answer, the mean over items"),
    "bits_per_byte_se": ("bits/byte", "its standard error"),
}


def bench(
    folder: Path, corpus: Path, items: Sequence[Item], device: str = "cpu"
) -> list[dict[str, Any]]:
    """Scores a run's kept weights in ``folder`` on ``items``; returns a row a task and kept step.

    ``corpus`` is the folder of its prepared corpus; ``device`` is auto, cpu or cuda. Raises
    UserError where there are no weights, no such device, or no task has choices that fit into the
    model's context.
    """
    torch.set_num_threads(threads())
    device = choose_device(device)
    tokenizer = Tokenizer.load(corpus / TOKENIZER)
    rows: list[dict[str, Any]] = []
    for step in (*read_kept(folder).steps, None):
        config, model = weights.load(folder, step)
        if tokenizer.vocab_size != config.model.vocab_size:
            raise UserError(f"{corpus} is not the corpus of run {config.run_id}")
        done = config.steps if step is None else step
        context = config.model.context
        about = {"step": done, "tokens": done * config.batch * context}
        rows += [
            {**about, **vars(scored)}
            for scored in score(model.to(device), tokenizer, items, context)
        ]
    return rows


# Writes scores to a path, a row each; a run that left no weights has no rows.
write_rows = partial(
    columns.write_rows,
    about=COLUMNS,
    texts=("task", "group"),
    counts=("step", "tokens", "items", "documents"),
)

"""Writes tasks for lm-evaluation-harness: for each task a YAML file and its questions.

The harness can then ask any model that transformers loads the questions that ``moelaws bench`` asks
a run, in the same tokens.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from moelaws.files.atomic import write_text
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.tasks.item import Item, by_task


def write_for_harness(folder: Path, items: Iterable[Item]) -> list[Path]:
    """Writes ``NAME.yaml`` and ``NAME.jsonl`` for each task to ``folder``; returns the YAML files.

    Raises UserError for a question with one choice alone or with a context for each choice, which
    the harness' multiple choice does not have.
    """
    tasks = by_task(items)
    for task, questions in tasks.items():
        if any(isinstance(item.context, tuple) or len(item.choices) == 1 for item in questions):
            raise UserError(
                f"the task {task} has questions with a context for each choice or with one choice "
                "alone, which the harness' multiple choice does not have; name other tasks"
            )
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for task, questions in tasks.items():
        name = task.replace("/", "_").replace(":", "_")
        lines = (
            {"context": i.context, "choices": i.choices, "answer": i.answer} for i in questions
        )
        data = folder / f"{name}.jsonl"
        write_text(data, "".join(json.dumps(line) + "\n" for line in lines))
        files.append(folder / f"{name}.yaml")
        kwargs = {"data_files": {"test": str(data.absolute())}}
        about = {**table_beside(__file__), "task": name, "dataset_kwargs": kwargs}
        write_text(files[-1], yaml.safe_dump(about, sort_keys=False))
    return files

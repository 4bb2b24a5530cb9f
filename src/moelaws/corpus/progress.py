"""The stages of a preparation, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable

from moelaws.records.progress import Report

# Called with a stage of STAGES, bytes of text done, bytes in all (None where they are unknown)
# and the tokens made of them.
Progress = Callable[[str, int, int | None, int], None]

STAGES = {
    "fetch": "reading the data set",
    "index": "looking for documents",
    "words": "counting words for the BPE",
    "merges": "learning the BPE's merges",
    "train": "tokenising the training text",
    "validation": "tokenising the validation text",
}


def shown_by(report: Report, name: str) -> Progress:
    """Returns a progress of the preparation of corpus ``name`` that ``report`` shows."""

    def progress(stage: str, done: int, total: int | None, tokens: int) -> None:
        of = "" if total is None else f" of {total / 1e6:.1f}"
        note = f"{done / 1e6:.1f}{of} MB"
        report(f"{name}, {STAGES[stage]}", done, total, note, MB=done / 1e6, tokens=tokens)

    return progress

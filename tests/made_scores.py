"""Scores of a run on tasks that no model gave, for tests of what reads them."""

from moelaws.probing.bench import COLUMNS, write_rows


def score_row(step, task, group, bits, accuracy, tokens=100):
    """A row of a run's scores: 50 questions with four choices from nine documents."""
    row = {
        "step": step, "tokens": tokens * step, "task": task, "group": group, "items": 50,
        "documents": 9, "chance": 0.25, "accuracy": accuracy, "accuracy_se": 0.03,
        "accuracy_per_byte": 0.5, "accuracy_per_byte_se": 0.03, "bits_per_byte": bits,
        "bits_per_byte_se": 0.1,
    }  # fmt: skip
    assert row.keys() == COLUMNS.keys()
    return row


def write_scores(results, run_id, rows):
    write_rows(results.scores(run_id), rows)

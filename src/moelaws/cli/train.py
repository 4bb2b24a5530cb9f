"""``moelaws train``: one run from its configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from moelaws.cli.gpu import Claim, again_alone, gpu_options, on_a_gpu
from moelaws.cli.output import json_option, print_json
from moelaws.records.files import read_json
from moelaws.records.layout import LACKED_MEMORY, Results
from moelaws.records.summary import RunSummary
from moelaws.spec.base import parse
from moelaws.spec.from_json import parse_json
from moelaws.spec.run import RunConfig


@click.command()
@click.argument("config")
@click.option("--results", default="results", help="Root of the records.", show_default=True)
@click.option("--out", help="A folder for this run alone, instead of RESULTS/runs/RUN_ID.")
@click.option("--corpus", help="Folder of the prepared corpus; RESULTS/corpora/CORPUS_ID if unset.")
@click.option(
    "--device",
    default="auto",
    help="auto, cpu or cuda.",
    show_default=True,
)
@click.option(
    "--backend", default="auto", help="Back end of the experts; auto chooses.", show_default=True
)
@click.option(
    "--micro-batch",
    type=int,
    help="Sequences computed at a time, a multiple of balance_group; halved when memory is short. "
    "A resumed run takes no more than it did before. [default: the batch]",
)
@gpu_options
@click.option(
    "--keep-weights",
    is_flag=True,
    help="Keep the final weights: RESULTS/weights/RUN_ID/model.safetensors.",
)
@json_option
def command(
    config: str,
    results: str,
    out: str | None,
    corpus: str | None,
    device: str,
    backend: str,
    micro_batch: int | None,
    gpu: Claim | None,
    keep_weights: bool,
    as_json: bool,
) -> None:
    """Train the run that CONFIG, a JSON file or - for standard input, describes.

    A run that is done is not trained again; an unfinished one continues from its checkpoint.
    SIGTERM and Ctrl-C write a checkpoint first (exit codes 143 and 130).
    """
    run = parse(RunConfig, _read(config), "standard input" if config == "-" else config)
    tree = Results(Path(results))
    folder = Path(corpus) if corpus else tree.corpus(run.corpus.corpus_id)
    record = Path(out) if out else tree.run(run.run_id)
    note = record / LACKED_MEMORY
    before = note.read_bytes() if note.exists() else b""
    with on_a_gpu(gpu, run.run_id, record):
        from moelaws.training.job import TrainingOptions
        from moelaws.training.run import train
        from moelaws.training.signals import Stopped

        try:
            options = TrainingOptions(device, backend, micro_batch, keep_weights, progress=True)
            summary = train(run, tree, folder, options, Path(out) if out else None)
        except Stopped as stopped:
            state = "checkpoint written" if stopped.saved else "no checkpoint written"
            click.echo(f"{run.run_id}: {stopped}; {state}, call again to continue", err=True)
            sys.exit(128 + stopped.signum)
    if gpu and gpu.is_shared and note.exists() and note.read_bytes() != before:
        again_alone(run)
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        click.echo(_line(summary))


def _read(config: str) -> object:
    if config != "-":
        return read_json(Path(config))
    return parse_json(sys.stdin.buffer.read(), "standard input")


def _line(summary: RunSummary) -> str:
    head = f"{summary.run_id} {summary.status}"
    if summary.loss is None:
        note = f": {summary.message}" if summary.message else ""
        return f"{head} at step {summary.steps}{note}, {summary.wall_seconds:.1f} s"
    error = "" if summary.loss_se is None else f" +- {summary.loss_se:.4f}"
    return (
        f"{head}: loss {summary.loss:.4f}{error} nats/token, "
        f"{summary.bits_per_byte:.3f} bits/byte, {summary.wall_seconds:.1f} s"
    )

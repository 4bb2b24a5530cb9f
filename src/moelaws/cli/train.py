"""``moelaws train``: one run from its configuration."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moelaws.cli.gpu import Claim, again_alone, gpu_options, on_gpus
from moelaws.cli.output import json_option, print_json
from moelaws.records.files import read_json
from moelaws.records.layout import LACKED_MEMORY, Results
from moelaws.records.summary import RunSummary
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.run import RunConfig

if TYPE_CHECKING:
    from moelaws.training.plan import TrainingOptions


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
    "A resumed run takes no more than it did before. [default: the batch; with "
    "several devices, a device's part of it]",
)
@click.option(
    "--devices",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Train on so many devices together, each with a part of the model and of each batch.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="In a job of Slurm: these devices are on so many of its nodes, as many on each.",
)
@gpu_options
@click.option(
    "--keep-weights",
    is_flag=True,
    help="Keep the final weights: RESULTS/weights/RUN_ID/model.safetensors.",
)
@click.option(
    "--keep-steps",
    metavar="STEP,...",
    help="Keep the weights after these steps too, such as 100,200: .../step_100.safetensors.",
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
    devices: int,
    nodes: int,
    gpu: Claim | None,
    keep_weights: bool,
    keep_steps: str | None,
    as_json: bool,
) -> None:
    """Train the run that CONFIG, a JSON file or - for standard input, describes.

    A run that is done is not trained again; an unfinished one continues from its checkpoint.
    SIGTERM and Ctrl-C write a checkpoint first (exit codes 143 and 130).

    torchrun starts it as well, and srun with one task a node: --devices then counts all nodes'.
    """
    if nodes > devices:
        raise UserError(f"--nodes is {nodes}; it must be at most --devices, which is {devices}")
    _check_starter(devices, gpu)
    run = parse(RunConfig, _read(config), "standard input" if config == "-" else config)
    tree = Results(Path(results))
    folder = Path(corpus) if corpus else tree.corpus(run.corpus.corpus_id)
    record = Path(out) if out else tree.run(run.run_id)
    note = record / LACKED_MEMORY
    before = note.read_bytes() if note.exists() else b""
    with on_gpus(gpu, devices, run.run_id, record):
        from moelaws.training.plan import TrainingOptions
        from moelaws.training.ranks import is_one_of_several
        from moelaws.training.run import checked

        steps = _steps(keep_steps, run)
        keeps = keep_weights or bool(steps)
        options = TrainingOptions(device, backend, micro_batch, keeps, steps, progress=True)
        if devices > 1 and not is_one_of_several():
            options = checked(run, options, devices)[0]  # so that a mistake is told once
            words = _words(options, devices, results, folder, out, as_json)
            sys.exit(_together(run, options.device, devices, nodes, words))
        summary = _trained(run, options, tree, folder, out)
    if gpu and gpu.is_shared and note.exists() and note.read_bytes() != before:
        again_alone(run)
    if summary is None:  # another process of this run prints it
        return
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        click.echo(_line(summary))


def _check_starter(devices: int, gpu: Claim | None) -> None:
    """Raises UserError, in the first of several processes, for options that torchrun contradicts.

    Others end silently.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes == 1:
        return
    mistake = ""
    if gpu is not None:
        mistake = "--gpus is for a command that starts its processes by itself, with --devices"
    elif devices not in (1, processes):
        mistake = f"--devices is {devices}; leave it out, or give the number of processes"
    if mistake and os.environ.get("RANK") != "0":
        sys.exit(2)
    if mistake:
        raise UserError(f"{mistake}: torchrun has started {processes} for this run")


def _trained(
    run: RunConfig, options: TrainingOptions, results: Results, corpus: Path, out: str | None
) -> RunSummary | None:
    """Returns the summary; None in all but the first of several processes, which say nothing."""
    from moelaws.training.ranks import is_first_process
    from moelaws.training.run import train
    from moelaws.training.signals import Stopped

    try:
        summary = train(run, results, corpus, options, Path(out) if out else None)
    except Stopped as stopped:
        if is_first_process():
            state = "checkpoint written" if stopped.saved else "no checkpoint written"
            click.echo(f"{run.run_id}: {stopped}; {state}, call again to continue", err=True)
        sys.exit(128 + stopped.signum)
    return summary if is_first_process() else None


def _words(
    options: TrainingOptions, devices: int, results: str, corpus: Path, out: str | None,
    as_json: bool,
) -> list[str]:  # fmt: skip
    """Returns this command's options, for the processes that train together."""
    words = ["--results", results, "--corpus", str(corpus), "--device", options.device]
    words += ["--backend", options.backend, "--devices", str(devices)]
    words += ["--out", out] if out else []
    words += ["--micro-batch", str(options.micro_batch)] if options.micro_batch else []
    words += ["--keep-weights"] if options.keep_weights else []
    words += ["--keep-steps", ",".join(map(str, options.keep_steps))] if options.keep_steps else []
    return words + (["--json"] if as_json else [])


def _together(run: RunConfig, device: str, devices: int, nodes: int, words: list[str]) -> int:
    """Has this command done by a process for each device; returns the exit code."""
    from moelaws.training.device import check_number
    from moelaws.training.together import across_nodes, node_of, together

    command = ["-P", "-m", "moelaws.cli", "train"]
    text = run.canonical_json()  # standard input may have been read
    if nodes > 1:
        across_nodes([*command, "-", *words], nodes, text)
    node = node_of(os.environ)
    check_number(device, devices // node.count)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        config.write(text)
        config.flush()
        return together([*command, config.name, *words], devices, node)


def _steps(words: str | None, run: RunConfig) -> tuple[int, ...]:
    """Returns the steps on the way whose weights are to be kept."""
    try:
        steps = {int(word) for word in words.split(",")} if words else set()
    except ValueError:
        raise UserError(f"--keep-steps is {words!r}; it must be steps such as 100,200") from None
    if wrong := sorted(step for step in steps if not 0 < step < run.steps):
        raise UserError(
            f"--keep-steps has {wrong[0]}; it must be between 1 and {run.steps - 1}: the run has "
            f"{run.steps} steps, and the weights after the last one are kept in any case"
        )
    return tuple(sorted(steps))


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

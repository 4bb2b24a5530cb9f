"""``moelaws train``: trains runs from their configurations, one alone or a batch side by side."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from moelaws.cli import end_as
from moelaws.cli.common import (
    COUNT,
    COUNTS,
    FILE,
    Words,
    gathered,
    json_command,
    marker_option,
    option,
    print_answer,
    read_named,
    results_option,
)
from moelaws.cli.gpu import device_option, gpus_option, holding, worker_environments
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.gpus.listing import Chosen
from moelaws.records.batches import Order, Orders, by_trunk, failures, forget_trunks, write_marker
from moelaws.records.progress import ended_by, last_lines
from moelaws.records.summary import RunSummary, finished, read_summary
from moelaws.records.tensors import are_kept
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.spec.words import counted

LOG_LINES = 8  # that are shown of the log of a run that failed


@dataclass(frozen=True)
class Setup:
    """How this command trains each of its runs."""

    results: Results
    out: Path | None
    corpus: Path | None
    device: str
    backend: str
    micro_batch: int | None
    devices: int
    nodes: int
    deterministic: bool

    def words(self, as_json: bool) -> list[str]:
        """Returns the options for the processes that train one run together."""
        words = ["--results", str(self.results.root)]
        for name in ("device", "backend", "devices", "corpus", "out", "micro_batch"):
            if value := getattr(self, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        return words + ["--deterministic"] * self.deterministic + ["--json"] * as_json


@json_command
@click.argument("runs", nargs=-1, required=True, metavar="RUN_OR_FILE...")
@results_option
@option("--out", "A folder for a single run, instead of RESULTS/runs/RUN_ID.", FILE)
@option("--corpus", "Folder of the prepared corpus; RESULTS/corpora/CORPUS_ID if unset.", FILE)
@device_option
@option("--backend", "Back end of the experts; auto chooses.", default="auto")
@option(
    "--micro-batch",
    "Sequences computed at a time, a multiple of balance_group; halved when memory is "
    "short. A resumed run takes no more than it did before. [default: the batch; with "
    "several devices, a device's part of it]",
    int,
)
@option("--workers", "Train so many runs at a time, each in a process of its own.", COUNT, 1)
@option("--runs-per-gpu", "So many workers train on the same GPU.", COUNT, 1)
@option(
    "--devices",
    "Train each run on so many devices, each with a part of the model and of each batch.",
    COUNT,
    1,
)
@option(
    "--nodes",
    "In a job of Slurm: these devices are on so many of its nodes, as many on each.",
    COUNT,
    1,
)
@option("--deterministic", "Compute the same bits again on a GPU, more slowly.", is_flag=True)
@gpus_option
@option(
    "--keep-weights",
    "Keep the final weights: RESULTS/weights/RUN_ID/model.safetensors.",
    is_flag=True,
)
@option(
    "--keep-steps",
    "Keep the weights after these steps too, such as 100,200: .../step_100.safetensors.",
    COUNTS,
    (),
)
@marker_option
@gathered("setup", Setup)
def command(
    runs: Words,
    setup: Setup,
    workers: int,
    runs_per_gpu: int,
    gpus: Chosen | None,
    keep_weights: bool,
    keep_steps: tuple[int, ...],
    marker: Path | None,
    as_json: bool,
) -> None:
    """Train each RUN_OR_FILE: a run on record by its id, or a JSON file of one run or of a batch.

    A file may be - for standard input. A run that is done is not trained again; an unfinished one
    continues from its checkpoint. SIGTERM and Ctrl-C write checkpoints first (exit codes 143 and
    130). A run that fails stops no other; the command then ends with exit code 1.

    torchrun starts it for a single run as well, and srun with one task a node: --devices then
    counts all nodes'.
    """
    tree, devices, nodes = setup.results, setup.devices, setup.nodes
    if nodes > devices:
        raise UserError(f"--nodes is {nodes}; it must be at most --devices, which is {devices}")
    started = os.environ.get("WORLD_SIZE") or "1"
    if started != "1" and (gpus is not None or str(devices) not in ("1", started)):
        raise UserError(
            f"torchrun has started {started} processes for this run; --gpus and another --devices "
            "are for a command that starts its processes by itself"
        )
    orders = by_trunk(
        order for run in runs for order in _orders(run, tree, keep_weights, keep_steps)
    )
    alone = len(orders) == 1 and marker is None
    if setup.out and not alone:
        raise UserError("--out is for a single run; without it each has a folder of its own")
    number = devices if devices > 1 else -(-workers // runs_per_gpu)
    if alone:
        with holding(gpus, number):
            _show(_train(orders[0], setup, as_json), as_json)
        return
    waiting = [order for order in orders if not _is_done(order, tree)]
    if waiting:
        with (
            holding(gpus, number) as held,
            worker_environments(held, workers, runs_per_gpu) as environments,
        ):
            _train_all(waiting, setup, environments)
    forget_trunks(orders, tree)
    if marker:
        write_marker(marker, orders, tree)
    summaries = [read_json(tree.summary(order.config.run_id)) for order in orders]
    done = counted(len(orders), "run has", "runs have")
    before = len(orders) - len(waiting)
    print_answer(as_json, summaries, f"{done} a summary, {before} had one before")


def _train_all(orders: Sequence[Order], setup: Setup, workers: Sequence[dict[str, str]]) -> None:
    """Trains ``orders`` side by side; those that lacked memory get a second try with a whole GPU.

    Ends the command after a signal, and where a run failed.
    """
    import moelaws.files.parquet
    import moelaws.training.run  # noqa: F401  # loads torch and pyarrow, once for all
    from moelaws.records.provenance import GPU_FRACTION, collect
    from moelaws.training.pool import Pool, dearest_first

    collect()  # forked processes inherit what it finds out about the code and the machine
    tree = setup.results

    def train(order: Order) -> None:
        end_as(lambda: _show(_train(order, setup, as_json=False), as_json=False))

    def log_of(order: Order) -> Path:
        return tree.run(order.config.run_id) / "log"

    pool = Pool(train, workers, log_of)
    failed = pool.run(dearest_first(orders, setup.device) if len(workers) > 1 else orders)
    alone = list({worker.get("CUDA_VISIBLE_DEVICES", ""): worker for worker in workers}.values())
    if len(alone) < len(workers) and not pool.stopped:
        lacked = [order for order in orders if _lacked_memory(order, tree)]
        for order in lacked:
            click.echo(f"{order.config.run_id}: trying again without others beside it", err=True)
        again = Pool(train, [{**worker, GPU_FRACTION: "1.0"} for worker in alone], log_of)
        failed |= again.run(lacked)
        pool.stopped = again.stopped
    for order in orders:
        with suppress(UserError, OSError):
            click.echo(_line(read_summary(tree.summary(order.config.run_id))))
            # A run that is asked for again later has not failed since
            tree.failures(order.config.run_id).unlink(missing_ok=True)
    if pool.stopped:
        click.echo("stopped; call again to continue from the checkpoints", err=True)
        sys.exit(128 + pool.stopped)
    for run, code in failed.items():
        if code > 0:
            write_json(tree.failures(run), {"count": failures(tree, run) + 1})
        log = tree.run(run) / "log"
        end = f"ended with exit code {code}" if code > 0 else ended_by(-code)
        click.echo(f"run {run} failed: it {end}; its log, {log}, ends so:", err=True)
        for line in last_lines(log, LOG_LINES):
            click.echo(f"    {line}", err=True)
    if failed:
        sys.exit(1)


def _lacked_memory(order: Order, results: Results) -> bool:
    with suppress(UserError):
        return read_summary(results.summary(order.config.run_id)).status == "out_of_memory"
    return False


def _is_done(order: Order, results: Results) -> bool:
    """Returns whether a run is finished and the weights that ``order`` asks for are kept.

    It reads files alone and loads no torch.
    """
    run_id = order.config.run_id
    with suppress(UserError):  # the run's own process reports a damaged record
        summary = finished(results.run(run_id), order.config)
        if summary is None or not order.keep:
            return summary is not None
        if summary.status != "completed":
            return results.kept(run_id).is_file()
        return are_kept(results.weights(run_id), run_id, order.steps)
    return False


def _orders(
    run: str, results: Results, keep_weights: bool, keep_steps: tuple[int, ...]
) -> Iterator[Order]:
    where, data = read_named(run, results)
    if isinstance(data, dict) and "runs" in data:
        yield from parse(Orders, data, where).runs
        return
    config = parse(RunConfig, data, where)
    if wrong := sorted(step for step in keep_steps if step >= config.steps):
        raise UserError(
            f"--keep-steps has {wrong[0]}; it must be between 1 and {config.steps - 1}: the run "
            f"has {config.steps} steps, and the weights after the last one are kept in any case"
        )
    steps = tuple(sorted(set(keep_steps)))
    yield Order(config=config, keep=keep_weights or bool(steps), steps=steps)


def _train(order: Order, setup: Setup, as_json: bool) -> RunSummary | None:
    """Trains one run in this process, or in a process for each of its devices.

    Returns the summary, or None in all but the first of several processes.
    """
    from moelaws.training.plan import TrainingOptions, checked
    from moelaws.training.ranks import place
    from moelaws.training.run import train
    from moelaws.training.signals import Stopped

    config = order.config
    options = TrainingOptions(
        setup.device,
        setup.backend,
        setup.micro_batch,
        order.keep,
        order.steps,
        setup.deterministic,
        progress=True,
        lengths=order.lengths,
    )
    rank, processes, _ = place()
    if setup.devices > 1 and processes == 1:
        device = checked(config, options, setup.devices)[0].device  # reports a mistake once
        sys.exit(_together(order, replace(setup, device=device), as_json))
    corpus = setup.corpus or setup.results.corpus(config.corpus.corpus_id)
    try:
        summary = train(config, setup.results, corpus, options, setup.out)
    except Stopped as stopped:
        if rank == 0:
            no = "" if stopped.saved else "no "
            click.echo(
                f"{config.run_id}: {stopped}; {no}checkpoint written, call again to continue",
                err=True,
            )
        sys.exit(128 + stopped.signum)
    return summary if rank == 0 else None


def _together(order: Order, setup: Setup, as_json: bool) -> int:
    """Runs this command in a process for each device; returns the exit code."""
    from moelaws.training.device import check_number
    from moelaws.training.together import across_nodes, node_of, together

    words = ["-P", "-m", "moelaws", "train", "-", *setup.words(as_json)]
    # Standard input cannot be read again.
    text = Orders(runs=(order,)).model_dump_json(exclude_defaults=True)
    if setup.nodes > 1:
        across_nodes(words, setup.nodes, text)
    node = node_of(os.environ)
    check_number(setup.device, setup.devices // node.count)
    return together(words, text, setup.devices, node)


def _show(summary: RunSummary | None, as_json: bool) -> None:
    """Prints the summary; without one, the first of several processes prints it."""
    if summary:
        print_answer(as_json, summary.model_dump(mode="json"), _line(summary))


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

"""Trains one run from its configuration to its record; it may be called again at any time."""

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from moelaws.files.atomic import write_json, write_text
from moelaws.files.layout import DOCUMENTS, HISTORY_SO_FAR, LACKED_MEMORY, Results
from moelaws.files.lock import UnwritableError, acquire
from moelaws.records.memory import keep_freed_memory
from moelaws.records.summary import RunSummary, finished
from moelaws.records.tensors import are_kept
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint, weights
from moelaws.training.device import compute_deterministically, threads
from moelaws.training.job import Outcome, execute
from moelaws.training.plan import (
    DEFAULTS,
    Log,
    RunFolders,
    TrainingOptions,
    TrainingPlan,
    check_devices,
    checked,
    to_stderr,
)
from moelaws.training.ranks import Ranks, joined
from moelaws.training.signals import Stop, Stopped, stoppable
from moelaws.training.trunk import Trunk


def train(
    config: RunConfig,
    results: Results,
    corpus: Path,
    options: TrainingOptions = DEFAULTS,
    out: Path | None = None,
    log: Log = to_stderr,
) -> RunSummary:
    """Trains ``config`` and writes its record; the summary, written last, says that it is done.

    A run that is done is not trained again: its summary is returned, even if nothing can be
    written. An unfinished run continues from its checkpoint; on the CPU with the same number of
    threads, and on the same kind of GPU if the options say ``deterministic``, the result is bit for
    bit as if it had never stopped. If another trainer has
    the same run, this one waits for it, also if that one took the run over while this one was
    suspended. Divergence and lack of memory are results with a ``status``; the latter is retried.

    ``corpus`` is the folder of the prepared corpus, and ``out`` one for this run alone, in place of
    those of ``results``. Raises UserError before training, for a device, back end or micro-batch
    that cannot be used, data of another corpus, or more passes over it than ``max_epochs``, and
    Stopped after a SIGTERM or SIGINT, with ``saved`` if the checkpoint was written.
    """
    torch.set_num_threads(threads())
    keep_freed_memory()
    options, backend, reason = checked(config, options)
    if options.deterministic and options.device == "cuda":
        compute_deterministically()
    folders = RunFolders.of(results, config.run_id, out)
    with joined(options.device) as ranks:
        check_devices(ranks.size, config)

        def of_this_run(line: str) -> None:
            if ranks.is_first:
                log(f"{config.run_id}: {line}")

        options = replace(options, progress=options.progress and ranks.is_first)
        trunk = _trunk(config, results, options, ranks) if out is None else None
        plan = TrainingPlan(
            config, options, backend, reason, corpus, folders, of_this_run, ranks, trunk
        )
        try:
            with trunk.holding if trunk else nullcontext():
                done = finished(folders.record, config) if ranks.is_first else None
                waits = done is None or _lacks_weights(plan, done)
                if trunk and ranks.is_first and waits:
                    trunk.join(lambda who: of_this_run(f"its trunk is carried by {who}: waiting"))
                return _under_lock(plan) if ranks.is_first else _beside_the_first(plan)
        # Finished runs can be read in a colleague's tree or in an archive, where nobody may write.
        except UnwritableError:
            summary = finished(folders.record, config)
            if summary is None or _lacks_weights(plan, summary):
                raise
            ranks.broadcast(False)
            return summary
        except Stopped as error:
            stopped = error
    raise stopped  # all processes have stopped and know it


def _trunk(
    config: RunConfig, results: Results, options: TrainingOptions, ranks: Ranks
) -> Trunk | None:
    """Returns the trunk of a run that shares one, now or with runs that have left states of it."""
    if config.trunk is None or options.keep_steps:
        return None
    folder = results.trunk(config.trunk)
    is_shared = ranks.broadcast(bool(options.lengths) or folder.is_dir())
    return Trunk(config, folder, options.lengths) if is_shared else None


def _beside_the_first(plan: TrainingPlan) -> RunSummary:
    """Trains together with the first process if that one decides so; that one writes the record."""
    with stoppable() as stop:
        if not plan.ranks.broadcast(False):
            while (summary := finished(plan.folders.record, plan.config)) is None:
                time.sleep(0.5)  # a network file system may show the summary late on this node
            return summary
        outcome = execute(plan, stop)
        if outcome.model is not None and plan.options.keep_weights:
            weights.of(outcome.model, plan.ranks)
        return outcome.summary


def _under_lock(plan: TrainingPlan) -> RunSummary:
    """Returns the summary, from the record or of a training now, while it holds the run's lock."""
    config, record = plan.config, plan.folders.record
    while True:
        waiting = acquire(record, on_wait=lambda who: plan.log(f"waiting for {who}"))
        with waiting as lock, stoppable() as stop:
            try:
                return _summary(replace(plan, check_lock=lock.check), stop)
            except Exception:
                # Without the lock, any failure may be caused by the other trainer.
                if lock.held():
                    raise
                if plan.ranks.size > 1:  # the other processes are in the middle of a step
                    raise UserError(f"{config.run_id}: another trainer took this run") from None
                plan.log("another trainer took this run over while this one was away")
                # A failure now would make the workflow delete what the other one has finished.
                if finished(record, config) is None:
                    stop.check()


def _summary(plan: TrainingPlan, stop: Stop) -> RunSummary:
    """Returns the summary on record, or trains the run now if there is none."""
    config, folders, keep_weights = plan.config, plan.folders, plan.options.keep_weights
    recorded = summary = finished(folders.record, config)
    if recorded is not None and keep_weights:
        if recorded.status != "completed":
            weights.finish(folders.weights, recorded.status)
        elif _lacks_weights(plan, recorded):
            plan.log("done, but its weights were not kept: it is trained again")
            summary = None
    plan.ranks.broadcast(summary is None)
    if summary is None:
        summary = _train_and_record(plan, stop, recorded)
    if summary.status != "out_of_memory":
        checkpoint.remove(folders.checkpoint)
    return summary


def _lacks_weights(plan: TrainingPlan, recorded: RunSummary) -> bool:
    return (
        plan.options.keep_weights
        and recorded.status == "completed"
        and not are_kept(plan.folders.weights, plan.config.run_id, plan.options.keep_steps)
    )


def _train_and_record(plan: TrainingPlan, stop: Stop, recorded: RunSummary | None) -> RunSummary:
    """Trains now. If the run is on record already, a training that fails does not change that."""
    config, folders, options = plan.config, plan.folders, plan.options
    # Weights of an earlier training go, but if it goes on, those on the way stay.
    weights.forget(folders.weights, on_the_way=not folders.checkpoint.exists())
    if options.keep_weights:
        weights.make_folder(folders.weights)
    # First, so that a run that fails or is interrupted is listed with its configuration.
    write_text(folders.record / "config.json", config.canonical_json() + "\n")
    plan.log(plan.reason)
    outcome = execute(plan, stop)
    summary = outcome.summary
    plan.check_lock()
    if options.keep_weights:
        if outcome.model is not None:
            weights.save(folders.weights, config, weights.of(outcome.model, plan.ranks))
        weights.finish(folders.weights, summary.status, options.keep_steps)
        plan.check_lock()  # again, because gigabytes take a while
    if recorded is not None and summary.status != "completed":  # the recorded result stays
        (folders.record / HISTORY_SO_FAR).unlink(missing_ok=True)
    else:
        _write_record(folders.record, outcome)
        recorded = summary
    if summary.status == "out_of_memory":  # a file newer than the summary makes the next call retry
        about = {"ended": datetime.now(UTC).isoformat(), "message": summary.message}
        write_json(folders.record / LACKED_MEMORY, about)
    return recorded


def _write_record(folder: Path, outcome: Outcome) -> None:
    """Writes history, load (of experts), documents (of completed runs); summary.json comes last."""
    evaluation, made_of = outcome.evaluation, {"run": outcome.summary.run_id}
    outcome.history.write(folder / "history.parquet", made_of)
    (folder / HISTORY_SO_FAR).unlink(missing_ok=True)
    counts_LE = evaluation.counts_LE if evaluation else None
    outcome.expert_load.write(folder / "load.parquet", counts_LE, made_of)
    if evaluation:
        evaluation.documents.write(folder / DOCUMENTS, made_of)
    else:  # an earlier training of the run may have left a file
        (folder / DOCUMENTS).unlink(missing_ok=True)
    write_json(folder / "provenance.json", outcome.provenance)
    write_json(folder / "summary.json", outcome.summary.model_dump(mode="json"))

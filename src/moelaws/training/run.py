"""One run from its configuration to its record; safe to call again at any time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import torch

from moelaws.model.backends import Backend, choose_backend
from moelaws.records.files import write_text
from moelaws.records.layout import Results
from moelaws.records.lock import Lock, UnwritableError, acquire
from moelaws.records.memory import keep_freed_memory
from moelaws.records.summary import RunSummary, finished
from moelaws.records.tensors import are_kept
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint, weights
from moelaws.training.device import choose_device, threads
from moelaws.training.job import TrainingJob
from moelaws.training.plan import DEFAULTS, Log, TrainingOptions, TrainingPlan, to_stderr
from moelaws.training.ranks import joined
from moelaws.training.record import (
    RunFolders,
    drop_history_so_far,
    note_lack_of_memory,
    write_record,
)
from moelaws.training.signals import Stop, Stopped, stoppable


def train(
    config: RunConfig,
    results: Results,
    corpus: Path,
    options: TrainingOptions = DEFAULTS,
    out: Path | None = None,
    log: Log = to_stderr,
) -> RunSummary:
    """Trains ``config`` and writes its record; the summary, written last, says that it is done.

    A run that is done is not trained again: its summary is returned, also where nothing can be
    written. An unfinished one continues from its checkpoint, on one device and with one number of
    threads bit for bit as if it had never stopped. Another trainer of the same run is waited for,
    also where it took the run over while this one was suspended. Divergence and lack of memory are
    results, told by ``status``; a run that lacked memory is tried again.

    Args:
        corpus: folder of the prepared corpus.
        out: a folder for this run alone, in place of those of ``results``.
        log: takes lines about the back end, waiting and resuming.

    Raises:
        UserError: before training, for a device, back end or micro-batch that cannot be used, data
            of another corpus, or more passes over it than ``max_epochs``.
        Stopped: after a SIGTERM or SIGINT, with ``saved`` when the checkpoint is written.
    """
    torch.set_num_threads(threads())
    keep_freed_memory()
    options, backend, reason = checked(config, options)
    folders = RunFolders.of(results, config.run_id, out)
    with joined(options.device) as ranks:
        _check_devices(ranks.size, config)
        if not ranks.is_first:
            options, log = replace(options, progress=False), lambda line: None
        plan = TrainingPlan(config, options, backend, reason, corpus, folders, log, ranks)
        try:
            return _of_the_first(plan) if ranks.is_first else _beside_it(plan)
        except Stopped as error:
            stopped = error
    raise stopped  # all have stopped, and have told each other


def checked(
    config: RunConfig, options: TrainingOptions, devices: int = 1
) -> tuple[TrainingOptions, Backend, str]:
    """Returns the options with the device that ``auto`` stands for, the back end, and why that one.

    Raises:
        UserError: for a device, back end, micro-batch or number of devices that cannot be used.
    """
    options = replace(options, device=choose_device(options.device))
    _check_micro_batch(options.micro_batch, config)
    _check_devices(devices, config)
    model, precision = config.model, config.precision
    return options, *choose_backend(options.backend, model, options.device, precision)


def _of_the_first(plan: TrainingPlan) -> RunSummary:
    """Returns the summary, on record or of a training now."""
    try:
        return _under_lock(plan)
    except UnwritableError:  # a colleague's tree, or an archive: what is done there can be read
        summary = finished(plan.folders.record, plan.config)
        if summary is None or _lacks_weights(plan, summary):
            raise
        plan.ranks.told(False)
        return summary


def _beside_it(plan: TrainingPlan) -> RunSummary:
    """Does the part of another process than the first: it trains where that one says so."""
    with stoppable() as stop:
        if not plan.ranks.told(False):
            while (summary := finished(plan.folders.record, plan.config)) is None:
                time.sleep(0.5)  # a network file system shows late what another node has seen
            return summary
        outcome = TrainingJob.open(plan, None, stop).execute()
        if outcome.model is not None and plan.options.keep_weights:
            weights.of(outcome.model, plan.ranks)
        return outcome.summary


def _under_lock(plan: TrainingPlan) -> RunSummary:
    """Returns the summary, on record or of a training now, holding the run's lock."""
    config, folders = plan.config, plan.folders

    def log(line: str) -> None:
        plan.log(f"{config.run_id}: {line}")

    while True:
        waiting = acquire(folders.record, on_wait=lambda who: log(f"waiting for {who}"))
        with waiting as lock, stoppable() as stop:
            try:
                return _summary(plan, lock, stop)
            except Exception:
                # Without the lock any failure may be the other trainer's doing.
                if lock.held():
                    raise
                if plan.ranks.size > 1:  # the other processes are in the midst of a step
                    raise UserError(f"{config.run_id}: another trainer took this run") from None
                log("another trainer took this run over while this one was away")
                # A failure now would tell the workflow to delete what the other has finished.
                if finished(folders.record, config) is None:
                    stop.check()


def _summary(plan: TrainingPlan, lock: Lock, stop: Stop) -> RunSummary:
    """Returns the summary on record, and trains the run now where there is none."""
    config, folders, options = plan.config, plan.folders, plan.options
    recorded = summary = finished(folders.record, config)
    if options.keep_weights and recorded is not None:
        if recorded.status != "completed":
            weights.finish(folders.weights, recorded.status)
        elif _lacks_weights(plan, recorded):
            plan.log(f"{config.run_id}: done, but its weights were not kept: it is trained again")
            summary = None
    plan.ranks.told(summary is None)
    if summary is None:
        summary = _train_and_record(plan, lock, stop, recorded)
    if summary.status != "out_of_memory":
        checkpoint.remove(folders.checkpoint)
    return summary


def _lacks_weights(plan: TrainingPlan, recorded: RunSummary) -> bool:
    return (
        plan.options.keep_weights
        and recorded.status == "completed"
        and not are_kept(plan.folders.weights, plan.config.run_id, plan.options.keep_steps)
    )


def _train_and_record(
    plan: TrainingPlan, lock: Lock, stop: Stop, recorded: RunSummary | None
) -> RunSummary:
    config, folders, options = plan.config, plan.folders, plan.options
    # Those of a training that is no longer on record; of one that goes on, those on the way stay.
    weights.forget(folders.weights, on_the_way=not folders.checkpoint.exists())
    if options.keep_weights:
        weights.make_folder(folders.weights)
    # Before anything can fail: an interrupted run is then listed with its configuration.
    write_text(folders.record / "config.json", config.canonical_json() + "\n")
    plan.log(f"{config.run_id}: {plan.reason}")
    outcome = TrainingJob.open(plan, lock, stop).execute()
    summary = outcome.summary
    lock.check()
    if options.keep_weights:
        if outcome.model is not None:
            weights.save(folders.weights, config, weights.of(outcome.model, plan.ranks))
        weights.finish(folders.weights, summary.status, options.keep_steps)
        lock.check()  # gigabytes take a while
    if recorded is not None and summary.status != "completed":
        drop_history_so_far(folders.record)
        note_lack_of_memory(folders.record, summary)
        return recorded  # what was measured stays
    write_record(folders.record, outcome)
    return summary


def _check_devices(devices: int, config: RunConfig) -> None:
    if config.groups < devices:
        parts = "balance groups" if config.smallest_micro_batch > 1 else "sequences"
        raise UserError(
            f"{devices} devices are too many for run {config.run_id}: each takes whole {parts} of "
            f"a batch, which has {config.groups}"
        )


def _check_micro_batch(micro_batch: int | None, config: RunConfig) -> None:
    smallest = config.smallest_micro_batch
    if micro_batch is not None and (micro_batch % smallest or not 0 < micro_batch <= config.batch):
        raise UserError(
            f"micro-batch is {micro_batch}; it must be a multiple of {smallest} and at most "
            f"batch = {config.batch}: the balance loss of a model with experts is measured over "
            "balance_group sequences, so only a smaller balance_group allows less"
        )

"""One run from its configuration to its record; safe to call again at any time."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.backends import choose_backend
from moelaws.records.files import remove, write_text
from moelaws.records.layout import Results
from moelaws.records.lock import Lock, acquire
from moelaws.records.summary import RunSummary
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import weights
from moelaws.training.attempt import Attempt, Say, check_held
from moelaws.training.device import choose_device, threads
from moelaws.training.memory import keep_freed_memory
from moelaws.training.record import finished, tell_lack_of_memory, write_record
from moelaws.training.signals import Stop, stoppable

CHECKPOINT_SECONDS = 30.0


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def train(
    config: RunConfig,
    results: Results,
    corpus: Path,
    device: str = "auto",
    backend: str = "auto",
    micro_batch: int | None = None,
    keep_weights: bool = False,
    progress: bool = False,
    out: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    say: Say = to_stderr,
) -> RunSummary:
    """Train ``config`` and write its record; the summary, written last, says that it is done.

    A run that is done is not trained again: its summary is returned. An unfinished one continues
    from its checkpoint, on one device and with one number of threads bit for bit as if it had
    never stopped. Another trainer of the same run is waited for, also where it took the run over
    while this one was suspended. Divergence and lack of memory are results, told by ``status``; a
    run that lacked memory is tried again.

    Args:
        corpus: folder of the prepared corpus.
        device: auto, cpu or cuda.
        backend: of the routed experts; auto or a name in ``model.backends.BACKENDS``.
        micro_batch: sequences computed at a time, a multiple of the balance group; the whole batch
            by default. Halved where memory lacks. A resumed run takes no more than before.
        keep_weights: keep the final weights of a completed run as safetensors; one that is done
            without them is trained again.
        progress: report on standard error.
        out: a folder for this run alone, in place of those of ``results``.
        checkpoint_seconds: wall time between checkpoints.
        say: takes lines about the back end, waiting and resuming.

    Raises:
        UserError: before training, for a device, back end or micro-batch that cannot be used, data
            of another corpus, or more passes over it than ``max_epochs``.
        Stopped: after a SIGTERM or SIGINT, with ``saved`` when the checkpoint is written.
    """
    run_id = config.run_id
    torch.set_num_threads(threads())
    keep_freed_memory()
    device = choose_device(device)
    experts, why = choose_backend(backend, config.model, device, config.precision)
    _check_micro_batch(micro_batch, config)
    folder = out or results.run(run_id)
    kept = out / "weights" if out else results.weights(run_id)
    saved = (out / "checkpoint" if out else results.checkpoint(run_id)) / "latest.pt"

    def attempt(lock: Lock, stop: Stop) -> RunSummary:
        before = summary = finished(folder, config)
        if keep_weights and summary is not None:
            if summary.status != "completed":
                weights.save_none(kept, summary.status)
            elif not weights.kept(kept, run_id):
                say(f"{run_id}: done, but its weights were not kept: it is trained again")
                summary = None
        if summary is None:
            weights.forget(kept)  # those of a training that is no longer on record
            if keep_weights:
                weights.make_folder(kept)
            # Before anything can fail: an interrupted run is then listed with its configuration.
            write_text(folder / "config.json", config.canonical_json() + "\n")
            say(f"{run_id}: {why}")
            run = Attempt(config, _open(corpus, config), device, experts, saved, lock, stop, say)
            summary = run.execute(micro_batch, checkpoint_seconds, progress)
            check_held(lock)
            if keep_weights:
                run.keep_weights(kept, summary.status)
                check_held(lock)  # gigabytes take a while
            if before is not None and summary.status != "completed":
                tell_lack_of_memory(folder, summary)
                return before  # what was measured stays
            write_record(folder, run.provenance, run.history, run.load, run.found, summary)
        if summary.status != "out_of_memory":
            remove(saved)
        return summary

    while True:
        waiting = acquire(folder, on_wait=lambda who: say(f"{run_id}: waiting for {who}"))
        with waiting as lock, stoppable() as stop:
            try:
                return attempt(lock, stop)
            except Exception:
                # Without the lock any failure may be the other trainer's doing.
                if lock.held():
                    raise
                say(f"{run_id}: another trainer took this run over while this one was away")
                # A failure now would tell the workflow to delete what the other has finished.
                summary = finished(folder, config)
                if summary is not None and not keep_weights:
                    return summary
                stop.check()


def _check_micro_batch(micro_batch: int | None, config: RunConfig) -> None:
    smallest = config.smallest_micro_batch
    if micro_batch is not None and (micro_batch % smallest or not 0 < micro_batch <= config.batch):
        raise UserError(
            f"micro-batch is {micro_batch}; it must be a multiple of {smallest} and at most "
            f"batch = {config.batch}: the balance loss of a model with experts is measured over "
            "balance_group sequences, so only a smaller balance_group allows less"
        )


def _open(folder: Path, config: RunConfig) -> PreparedCorpus:
    data = PreparedCorpus.open(folder)
    if data.corpus != config.corpus:
        raise UserError(
            f"{folder}: holds corpus {data.corpus.corpus_id}, but run {config.run_id} is on "
            f"{config.corpus.corpus_id}; prepare that one (moelaws corpus) or name its folder"
        )
    return data

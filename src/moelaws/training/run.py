"""One run from its configuration to its record; safe to call again at any time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from moelaws.corpus.batches import Batches, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.experts import Backend, choose_backend
from moelaws.model.transformer import Transformer
from moelaws.records.files import write_text
from moelaws.records.layout import Results
from moelaws.records.lock import Lock, acquire
from moelaws.records.provenance import collect
from moelaws.records.summary import RunSummary, Status
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint
from moelaws.training.device import choose_device, device_name, lacks_memory, peak_memory, threads
from moelaws.training.evaluation import Evaluated, evaluate
from moelaws.training.history import History
from moelaws.training.loop import Trainer
from moelaws.training.memory import keep_freed_memory
from moelaws.training.progress import Report, reporting
from moelaws.training.record import finished, summarize, write_record
from moelaws.training.signals import Stop, Stopped, stoppable

CHECKPOINT_SECONDS = 30.0
EVALUATION_TOKENS = 4096  # at a time
# What a run's provenance keeps of the processes that trained it before the last one.
OF_A_PROCESS = ("started", "code", "commit", "dirty", "host", "device", "backend", "threads")

Say = Callable[[str], None]


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def train(
    config: RunConfig,
    results: Results,
    corpus: Path,
    device: str = "auto",
    backend: str = "auto",
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
        backend: of the routed experts; auto or a name in ``model.experts.BACKENDS``.
        progress: report on standard error.
        out: a folder for this run alone, in place of those of ``results``.
        checkpoint_seconds: wall time between checkpoints.
        say: takes lines about the back end, waiting and resuming.

    Raises:
        UserError: before training, for a device or back end that cannot be used, data of another
            corpus, or more passes over it than ``max_epochs``.
        Stopped: after a SIGTERM or SIGINT, when the checkpoint is written.
    """
    run_id = config.run_id
    torch.set_num_threads(threads())
    keep_freed_memory()
    device = choose_device(device)
    function, why = choose_backend(backend, config.model, device, config.precision)
    folder = out or results.run(run_id)
    saved = (out / "checkpoint" if out else results.checkpoint(run_id)) / "latest.pt"

    def attempt(lock: Lock, stop: Stop) -> RunSummary:
        summary = finished(folder, config)
        if summary is None:
            # Before anything can fail: an interrupted run is then listed with its configuration.
            write_text(folder / "config.json", config.canonical_json() + "\n")
            say(f"{run_id}: {why}")
            run = _Run(config, _open(corpus, config), device, function, saved, lock, stop, say)
            summary = run.execute(checkpoint_seconds, progress)
            _check_held(lock)
            write_record(folder, run.provenance, run.history, summary)
        if summary.status != "out_of_memory":
            checkpoint.remove(saved)
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
                if summary is not None:
                    return summary
                stop.check()


def _open(folder: Path, config: RunConfig) -> PreparedCorpus:
    data = PreparedCorpus.open(folder)
    if data.corpus != config.corpus:
        raise UserError(
            f"{folder}: holds corpus {data.corpus.corpus_id}, but run {config.run_id} is on "
            f"{config.corpus.corpus_id}; prepare that one (moelaws corpus) or name its folder"
        )
    return data


class _TakenOver(Exception):  # noqa: N818, it is no error
    """Another trainer broke this one's lock: nothing may be written any more."""


def _check_held(lock: Lock) -> None:
    if not lock.held():
        raise _TakenOver


class _Run:
    """The training and evaluation of one run, its data checked, its lock held."""

    def __init__(
        self,
        config: RunConfig,
        data: PreparedCorpus,
        device: str,
        backend: Backend,
        saved: Path,
        lock: Lock,
        stop: Stop,
        say: Say,
    ) -> None:
        context = config.model.context
        self.batches = Batches(data, config.batch, context, config.seed, config.max_epochs)
        self.batches.check(config.steps)
        self.held_out = validation(data, config.evaluation.sequences, context)
        self.identity = {"run": config.run_id, "data": data.shard_hashes["train.bin"]}
        self.config, self.device, self.backend, self.saved = config, device, backend, saved
        self.provenance = {
            **collect(),
            "device": device_name(device),
            "backend": backend.name,
            "threads": torch.get_num_threads(),
            "corpus_files": data.shard_hashes,
            "resumed_from": [],
        }
        self.lock, self.stop, self.say = lock, stop, say
        self.history = History()
        self.began, self.earlier = time.perf_counter(), 0.0

    def wall_seconds(self) -> float:
        """Of this process and those before it that left a checkpoint."""
        return self.earlier + time.perf_counter() - self.began

    def execute(self, checkpoint_seconds: float, progress: bool) -> RunSummary:
        """Train and evaluate, from the checkpoint on where there is a good one."""
        trainer: Trainer | None = None
        found: Evaluated | None = None
        message = ""
        try:
            config = self.config
            model = Transformer(config.model, config.seed, self.backend, config.precision)
            trainer = Trainer(config, model.to(self.device), self.batches)
            self.history = trainer.history
            self.resume(trainer)
            status, found = self.train_and_evaluate(trainer, checkpoint_seconds, progress)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
            status, message = "out_of_memory", f"on {device_name(self.device)}: {error}"
            self.history.settle()
        return summarize(
            self.config,
            status,
            self.history,
            found,
            epochs=len(self.history) * self.config.batch / self.batches.windows,
            training_seconds=trainer.seconds if trainer else 0.0,
            wall_seconds=self.wall_seconds(),
            peak_memory=peak_memory(self.device),
            message=message,
        )

    def resume(self, trainer: Trainer) -> None:
        state, refused = checkpoint.load(self.saved, self.identity)
        if refused:
            self.say(f"checkpoint refused, the run starts over: {refused}")
        if state is not None:
            trainer.restore(state["trainer"])
            self.earlier = float(state["wall_seconds"])
            self.provenance["resumed_from"] = state["processes"]
            self.say(f"{self.config.run_id}: resumed at step {trainer.step}/{self.config.steps}")

    def save(self, trainer: Trainer) -> None:
        _check_held(self.lock)
        this = {key: self.provenance[key] for key in OF_A_PROCESS}
        state: dict[str, Any] = {
            "trainer": trainer.state(),
            "wall_seconds": self.wall_seconds(),
            "processes": [*self.provenance["resumed_from"], this],
        }
        checkpoint.save(self.saved, self.identity, state)

    def train_and_evaluate(
        self, trainer: Trainer, checkpoint_seconds: float, progress: bool
    ) -> tuple[Status, Evaluated | None]:
        """Status and measurement; a signal on the way leaves a checkpoint and raises Stopped."""
        config = self.config
        with ExitStack() as stack:
            report: Report | None = None
            if progress:
                shape = (config.steps, config.batch * config.model.context, trainer.step)
                report = stack.enter_context(reporting(config.run_id, *shape))
            last_saved = time.monotonic()

            def after_step() -> None:
                nonlocal last_saved
                self.stop.check()
                if report:
                    report(trainer.step, trainer.history.loss())
                if time.monotonic() - last_saved >= checkpoint_seconds:
                    self.save(trainer)
                    last_saved = time.monotonic()

            try:
                if not trainer.run(after_step):
                    return "diverged", None
                batch = max(1, EVALUATION_TOKENS // config.model.context)
                found = evaluate(trainer.model, self.held_out, batch, self.stop.check)
            except Stopped:
                self.save(trainer)
                raise
        return ("completed", found) if math.isfinite(found.loss) else ("diverged", None)

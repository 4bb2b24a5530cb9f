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
from moelaws.model.backends import Backend, choose_backend
from moelaws.model.transformer import Transformer
from moelaws.records.files import write_text
from moelaws.records.layout import Results
from moelaws.records.lock import Lock, acquire
from moelaws.records.provenance import collect
from moelaws.records.summary import RunSummary, Status
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint, weights
from moelaws.training.device import choose_device, device_name, lacks_memory, peak_memory, threads
from moelaws.training.evaluation import Evaluated, evaluate
from moelaws.training.history import History
from moelaws.training.load import Load
from moelaws.training.loop import Trainer
from moelaws.training.memory import give_back, keep_freed_memory
from moelaws.training.progress import Report, reporting
from moelaws.training.record import finished, summarize, tell_lack_of_memory, write_record
from moelaws.training.signals import Stop, Stopped, stoppable

CHECKPOINT_SECONDS = 30.0
EVALUATION_TOKENS = 4096  # at a time
# What a run's provenance keeps of the processes that trained it before the last one.
OF_A_PROCESS = (
    "started", "code", "commit", "dirty", "host", "device", "backend", "threads", "micro_batch",
)  # fmt: skip

Say = Callable[[str], None]


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
            by default. Halved where memory lacks. A resumed run goes on with its own.
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
            run = _Run(config, _open(corpus, config), device, experts, saved, lock, stop, say)
            summary = run.execute(micro_batch, checkpoint_seconds, progress)
            _check_held(lock)
            if keep_weights:
                run.keep_weights(kept, summary.status)
                _check_held(lock)  # gigabytes take a while
            if before is not None and summary.status != "completed":
                tell_lack_of_memory(folder, summary)
                return before  # what was measured stays
            write_record(folder, run.provenance, run.history, run.load, run.found, summary)
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
        # What the record is written from, however far the run came.
        self.history, self.load = History(), Load(config.steps, 0)
        self.model: Transformer | None = None
        self.found: Evaluated | None = None
        self.began, self.earlier = time.perf_counter(), 0.0

    def tell(self, line: str) -> None:
        self.say(f"{self.config.run_id}: {line}")

    def wall_seconds(self) -> float:
        """Of this process and those before it that left a checkpoint."""
        return self.earlier + time.perf_counter() - self.began

    def execute(
        self, micro_batch: int | None, checkpoint_seconds: float, progress: bool
    ) -> RunSummary:
        """Train and evaluate, from the checkpoint on where there is a good one."""
        trainer: Trainer | None = None
        message = ""
        try:
            config = self.config
            self.model = Transformer(config.model, config.seed, self.backend, config.precision)
            self.model.to(self.device)
            trainer = Trainer(config, self.model, self.batches, micro_batch, self.tell)
            self.history, self.load = trainer.history, trainer.load
            self.resume(trainer)
            status, self.found = self.train_and_evaluate(trainer, checkpoint_seconds, progress)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
            status, message = "out_of_memory", self.lacking(trainer, error)
        self.provenance["micro_batch"] = trainer.micro_batch if trainer else micro_batch
        seconds = trainer.seconds if trainer else 0.0
        if status != "completed":
            self.model = None
        # The record takes a little memory too.
        trainer = None
        give_back(torch.device(self.device))
        self.history.settle()
        return summarize(
            self.config,
            status,
            self.history,
            self.found,
            epochs=len(self.history) * self.config.batch / self.batches.windows,
            training_seconds=seconds,
            wall_seconds=self.wall_seconds(),
            peak_memory=peak_memory(self.device),
            message=message,
        )

    def lacking(self, trainer: Trainer | None, error: BaseException) -> str:
        at_once = trainer.micro_batch if trainer else self.config.smallest_micro_batch
        return (
            f"on {device_name(self.device)}, with {at_once} sequences at a time; a smaller "
            f"balance_group, context or model takes less ({str(error).partition(chr(10))[0]})"
        )

    def keep_weights(self, folder: Path, status: Status) -> None:
        """Of a completed run; of another one the reason why there are none."""
        if status == "completed" and self.model is not None:
            weights.save(folder, self.config, self.model)
        else:
            weights.save_none(folder, status)

    def resume(self, trainer: Trainer) -> None:
        state, refused = checkpoint.load(self.saved, self.identity)
        if refused:
            self.tell(f"checkpoint refused, the run starts over: {refused}")
        if state is not None:
            trainer.restore(state["trainer"])
            self.earlier = float(state["wall_seconds"])
            self.provenance["resumed_from"] = state["processes"]
            self.tell(
                f"resumed at step {trainer.step}/{self.config.steps}, "
                f"{trainer.micro_batch} sequences at a time"
            )

    def save(self, trainer: Trainer) -> None:
        _check_held(self.lock)
        self.provenance["micro_batch"] = trainer.micro_batch
        this = {key: self.provenance[key] for key in OF_A_PROCESS}
        state: dict[str, Any] = {
            "trainer": trainer.state(),
            "wall_seconds": self.wall_seconds(),
            "processes": [*self.provenance["resumed_from"], this],
        }
        checkpoint.save(self.saved, self.identity, state)

    def measure(self, model: Transformer) -> Evaluated:
        """On the held-out set, in smaller and smaller parts where memory lacks."""
        batch = max(1, EVALUATION_TOKENS // self.config.model.context)
        while True:
            try:
                return evaluate(model, self.held_out, batch, self.stop.check)
            except (RuntimeError, MemoryError) as error:
                if not lacks_memory(error) or batch == 1:
                    raise
            batch //= 2
            give_back(torch.device(self.device))

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
                    try:
                        self.save(trainer)
                    except UserError as error:  # the disk may have room again at the next one
                        self.tell(f"{error} Training goes on.")
                    last_saved = time.monotonic()

            try:
                if not trainer.run(after_step):
                    return "diverged", None
                found = self.measure(trainer.model)
            except Stopped as stopped:
                try:
                    self.save(trainer)
                    stopped.saved = True
                except UserError as error:
                    self.tell(str(error))
                raise
        return ("completed", found) if math.isfinite(found.loss) else ("diverged", None)

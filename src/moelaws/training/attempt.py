"""One process' attempt at a run: train and measure, from the checkpoint on where there is one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from moelaws.corpus.batches import Batches, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.backends import Backend
from moelaws.model.transformer import Transformer
from moelaws.records.lock import Lock
from moelaws.records.provenance import collect
from moelaws.records.summary import RunSummary, Status
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint, weights
from moelaws.training.device import device_name, lacks_memory, peak_of
from moelaws.training.evaluation import Evaluated, evaluate
from moelaws.training.history import History
from moelaws.training.load import Load
from moelaws.training.loop import Trainer
from moelaws.training.memory import give_back
from moelaws.training.progress import Report, reporting
from moelaws.training.record import summarize
from moelaws.training.signals import Stop, Stopped

EVALUATION_TOKENS = 4096  # at a time
# What a run's provenance keeps of the processes that trained it before the last one.
OF_A_PROCESS = (
    "started", "code", "commit", "dirty", "host", "device", "backend", "threads", "micro_batch",
)  # fmt: skip

Say = Callable[[str], None]


class TakenOver(Exception):  # noqa: N818, it is no error
    """Another trainer broke this one's lock: nothing may be written any more."""


def check_held(lock: Lock) -> None:
    if not lock.held():
        raise TakenOver


class Attempt:
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
            peak_memory=peak_of(self.device),
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
        check_held(self.lock)
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

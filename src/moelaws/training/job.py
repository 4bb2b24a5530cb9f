"""One process' training of a run, which continues from a checkpoint where there is one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from typing import Any

import torch
from torch import nn

from moelaws.corpus.batches import Batches, Validation, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.transformer import Transformer
from moelaws.records.layout import HISTORY_SO_FAR
from moelaws.records.lock import Lock
from moelaws.records.progress import Report, reporting
from moelaws.records.provenance import collect
from moelaws.records.summary import RunSummary, Status
from moelaws.records.tensors import is_whole
from moelaws.spec.errors import UserError
from moelaws.training import checkpoint, weights
from moelaws.training.attempts import FILE, Attempts, Stage
from moelaws.training.device import device_name, give_back, lacks_memory, peak_of
from moelaws.training.evaluation import Evaluation, evaluate
from moelaws.training.expert_load import ExpertLoad, balance
from moelaws.training.history import History
from moelaws.training.loop import Trainer, halved
from moelaws.training.plan import TrainingPlan
from moelaws.training.ranks import Lacked
from moelaws.training.record import Outcome
from moelaws.training.signals import Stop, Stopped

EVALUATION_TOKENS = 4096  # tokens that are evaluated at a time
# What a run's provenance keeps of the processes that trained it before the last one.
OF_A_PROCESS = (
    "started", "code", "commit", "dirty", "host", "device", "devices", "backend", "threads",
    "micro_batch",
)  # fmt: skip


class NoRoomError(MemoryError):
    """Earlier processes died of the least that can be tried; all processes of the run know it."""


@dataclass
class TrainingJob:
    """The training and evaluation of one run, whose data is checked and whose lock is held."""

    plan: TrainingPlan
    lock: Lock | None  # in the first of several processes alone
    stop: Stop
    batches: Batches
    held_out: Validation
    provenance: dict[str, Any]
    attempts: Attempts
    earlier_seconds: float = 0.0  # wall time of the processes before this one
    stage: Stage = "training"  # that is being tried, ...
    sequences: int = 0  # ... with so many at a time
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def open(cls, plan: TrainingPlan, lock: Lock | None, stop: Stop) -> TrainingJob:
        """Opens and checks the data of ``plan``, and notes what code and machine train it.

        Raises:
            UserError: for data of another corpus, or more passes over it than ``max_epochs``.
        """
        config, device = plan.config, plan.options.device
        context = config.model.context
        data = PreparedCorpus.open(plan.corpus)
        if data.corpus != config.corpus:
            raise UserError(
                f"{plan.corpus} holds corpus {data.corpus.corpus_id}, but run {config.run_id} is "
                f"on {config.corpus.corpus_id}; prepare that one (moelaws corpus) or name its "
                "folder"
            )
        batches = Batches(data, config.batch, context, config.seed, config.max_epochs)
        batches.check(config.steps)
        provenance = {
            **collect(),
            "device": device_name(device),
            "devices": plan.ranks.size,
            "backend": plan.backend.name,
            "threads": torch.get_num_threads(),
            "corpus_files": data.shard_hashes,
            "resumed_from": [],
        }
        held_out = validation(data, config.evaluation.sequences, context)
        attempts = Attempts(plan.folders.checkpoint.with_name(FILE), plan.ranks.is_first)
        return cls(plan, lock, stop, batches, held_out, provenance, attempts)

    def log(self, line: str) -> None:
        self.plan.log(f"{self.plan.config.run_id}: {line}")

    def check_lock(self) -> None:
        """Raises TakenOver where another trainer took the run."""
        if self.lock is not None:
            self.lock.check()

    @property
    def identity(self) -> dict[str, str]:
        """Returns the run and the data that a checkpoint must be of."""
        return {
            "run": self.plan.config.run_id,
            "data": self.provenance["corpus_files"]["train.bin"],
        }

    def wall_seconds(self) -> float:
        """Returns the time of this process and of those before it that left a checkpoint."""
        return self.earlier_seconds + time.perf_counter() - self.began

    def execute(self) -> Outcome:
        """Trains and evaluates, and continues from the checkpoint where there is a good one.

        Raises:
            Stopped: after a SIGTERM or SIGINT, with ``saved`` when a checkpoint is written.
            TakenOver: when another trainer took the run.
            Lacked: in one of several processes that lacked memory.
        """
        config, options = self.plan.config, self.plan.options
        trainer: Trainer | None = None
        evaluation: Evaluation | None = None
        message = ""
        try:
            trainer = self.build_trainer()
            self.resume(trainer)
            # The models of some are made, or read, later than the computation waits for.
            self.plan.ranks.told(True)
            evaluation = self.train_and_evaluate(trainer)
            status: Status = "completed" if evaluation else "diverged"
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
            if self.plan.ranks.size > 1 and not isinstance(error, NoRoomError):
                # The others are in the midst of a step: only a new start can take less.
                self.attempts.fail(self.stage, self.sequences)
                raise Lacked from error
            status, message = "out_of_memory", self.describe_lack(trainer, error)
        self.attempts.end()
        history, expert_load = History(), ExpertLoad(config.steps, 0)
        seconds, model = 0.0, None
        self.provenance["micro_batch"] = options.micro_batch
        if trainer:
            history, expert_load = trainer.history, trainer.expert_load
            seconds, model = trainer.seconds, trainer.model if evaluation else None
            self.provenance["micro_batch"] = trainer.micro_batch
            trainer = None  # the record takes a little memory too
        give_back(torch.device(options.device))
        history.settle()
        summary = self.summarize(status, history, evaluation, seconds, message)
        return Outcome(summary, self.provenance, history, expert_load, evaluation, model)

    def build_trainer(self) -> Trainer:
        config, options = self.plan.config, self.plan.options
        smallest = config.smallest_micro_batch
        ranks = self.plan.ranks
        part = math.ceil(config.groups / ranks.size) * smallest
        whole = min(options.micro_batch or part, part)
        micro_batch = self.largest("training", whole, smallest)
        self.begin("training", micro_batch, micro_batch < whole)
        place: Callable[[nn.Module], None] = methodcaller("to", options.device)
        if ranks.size > 1:
            from moelaws.training.sharding import Sharding  # loads much of torch

            place = Sharding(ranks, options.device)
        model = Transformer(config.model, config.seed, self.plan.backend, config.precision, place)
        return Trainer(config, model, self.batches, micro_batch, self.on_lack, ranks)

    def begin(self, stage: Stage, sequences: int, lacked: bool) -> None:
        """Notes what is tried now."""
        self.stage, self.sequences = stage, sequences
        self.attempts.begin(stage, sequences, lacked)

    def largest(self, stage: Stage, whole: int, smallest: int) -> int:
        """Returns the most sequences to try at a time: fewer than processes before this died of.

        Raises:
            NoRoomError: where they died of ``smallest``.
        """
        sequences, died = whole, self.attempts.died(stage)
        if died is not None and died.lacks_memory(smallest):
            tried = died.sequences
            sequences = min(whole, halved(tried, smallest)) if tried > smallest else 0
        sequences = self.plan.ranks.told(sequences)
        if not sequences:
            count = died.processes if died else 0
            raise NoRoomError(f"{count} processes in a row ended without a word")
        if died is not None and sequences < whole:
            self.log(
                f"the process before this one ended without a word in {stage}, with "
                f"{died.sequences} sequences at a time, as lack of memory may end it: going on "
                f"with {sequences}"
            )
        return sequences

    def on_lack(self, micro_batch: int) -> None:
        """Takes the smaller micro-batch that is tried next."""
        self.check_lock()
        self.begin("training", micro_batch, lacked=True)
        self.log(f"out of memory: going on with micro-batches of {micro_batch} sequences")

    def summarize(
        self,
        status: Status,
        history: History,
        evaluation: Evaluation | None,
        training_seconds: float,
        message: str,
    ) -> RunSummary:
        """Returns the summary of a run; a completed one has an evaluation."""
        config, steps = self.plan.config, len(history)
        tokens = steps * config.batch * config.model.context
        counts_LE = evaluation.counts_LE if evaluation else None
        return RunSummary(
            run_id=config.run_id,
            status=status,
            loss=evaluation.loss if evaluation else None,
            loss_se=evaluation.loss_se if evaluation else None,
            bits_per_byte=evaluation.bits_per_byte if evaluation else None,
            train_loss=history.recent_loss(),
            steps=steps,
            tokens=tokens,
            epochs=steps * config.batch / self.batches.windows,
            balance=None if counts_LE is None else balance(counts_LE),
            wall_seconds=self.wall_seconds(),
            tokens_per_second=tokens / training_seconds if training_seconds else 0.0,
            peak_memory_bytes=self.plan.ranks.most(peak_of(self.plan.options.device)),
            message=message,
        )

    def describe_lack(self, trainer: Trainer | None, error: BaseException) -> str:
        sequences = trainer.micro_batch if trainer else self.plan.config.smallest_micro_batch
        return (
            f"on {self.provenance['device']}, with {sequences} sequences at a time; a smaller "
            f"balance_group, context or model takes less ({str(error).partition(chr(10))[0]})"
        )

    def resume(self, trainer: Trainer) -> None:
        folder, ranks = self.plan.folders.checkpoint, self.plan.ranks
        state, refusal = checkpoint.load(folder, self.identity, ranks)
        if state is not None and (lost := ranks.told(self.lost(state["trainer"]["step"]))):
            state, refusal = None, f"the weights after step {lost} were not kept, or are gone"
        if refusal:
            self.log(f"checkpoint refused, the run starts over: {refusal}")
        if state is not None:
            before = trainer.micro_batch
            trainer.restore(state["trainer"])
            if trainer.micro_batch < before:
                self.begin("training", trainer.micro_batch, lacked=False)
            self.earlier_seconds = float(state["wall_seconds"])
            self.provenance["resumed_from"] = state["processes"]
            self.log(
                f"resumed at step {trainer.step}/{self.plan.config.steps}, "
                f"{trainer.micro_batch} sequences at a time"
            )

    def save(self, trainer: Trainer) -> None:
        """Writes a checkpoint.

        Raises:
            UserError: where the disk has no room for it.
            TakenOver: where another trainer took the run.
        """
        self.check_lock()
        self.provenance["micro_batch"] = trainer.micro_batch
        this_process = {key: self.provenance[key] for key in OF_A_PROCESS}
        state: dict[str, Any] = {
            "trainer": trainer.state(),
            "wall_seconds": self.wall_seconds(),
            "processes": [*self.provenance["resumed_from"], this_process],
        }
        checkpoint.save(self.plan.folders.checkpoint, self.identity, state, self.plan.ranks)

    def train_and_evaluate(self, trainer: Trainer) -> Evaluation | None:
        """Returns the evaluation, or None where the run diverged.

        A signal on the way leaves a checkpoint and raises Stopped.
        """
        options = self.plan.options
        last_saved, last_written = time.monotonic(), -math.inf
        try:
            with reporting() as report:

                def after_step() -> None:
                    nonlocal last_saved, last_written
                    self.attempts.end()
                    self.keep_weights(trainer)
                    self.stop.check_all(self.plan.ranks)
                    if self.plan.ranks.is_first:
                        self.show(trainer, report)
                        if time.monotonic() - last_written >= options.history_seconds:
                            self.write_history_so_far(trainer)
                            last_written = time.monotonic()
                    due = time.monotonic() - last_saved >= options.checkpoint_seconds
                    if self.plan.ranks.told(due):
                        try:
                            self.save(trainer)
                        except UserError as error:  # the disk may have room again at the next one
                            self.log(f"{error} Training goes on.")
                        last_saved = time.monotonic()

                self.show(trainer, report)
                if not trainer.run(after_step):
                    return None
                evaluation = self.evaluate(trainer.model)
        except Stopped as stopped:
            try:
                self.save(trainer)
                stopped.saved = True
            except UserError as error:
                self.log(str(error))
            self.attempts.end()
            raise
        return evaluation if math.isfinite(evaluation.loss) else None

    def keep_weights(self, trainer: Trainer) -> None:
        """Keeps the weights after a step on the way that is asked for.

        Raises:
            UserError: where the disk has no room for them.
            TakenOver: where another trainer took the run.
        """
        options, config = self.plan.options, self.plan.config
        if not options.keep_weights or trainer.step not in options.keep_steps:
            return
        whole = weights.of(trainer.model, self.plan.ranks)
        if self.plan.ranks.is_first:
            self.check_lock()
            weights.save(self.plan.folders.weights, config, whole, trainer.step)

    def lost(self, step: int) -> int:
        """Returns the first step up to ``step`` whose weights should be there and are not, or 0."""
        folder, run_id = self.plan.folders.weights, self.plan.config.run_id
        asked = self.plan.options.keep_steps if self.plan.options.keep_weights else ()
        passed = (s for s in asked if s <= step)
        return next((s for s in passed if not is_whole(folder, run_id, s)), 0)

    def write_history_so_far(self, trainer: Trainer) -> None:
        """Writes the history for those who watch: nothing else reads it, so that it may fail.

        Raises:
            TakenOver: where another trainer took the run.
        """
        self.check_lock()
        known = {key: self.provenance[key] for key in ("host", "device", "started")}
        with suppress(UserError):  # no room on the disk
            # Settled steps alone, a few behind: no waiting for the device.
            trainer.history.write(self.plan.folders.record / HISTORY_SO_FAR, known)

    def show(self, trainer: Trainer, report: Report) -> None:
        """Reports the step and its loss, where progress is asked for."""
        if self.plan.options.progress:
            config, step, loss = self.plan.config, trainer.step, trainer.history.loss()
            # Losses come from the device a few steps late: at first there is none.
            known = "-" if math.isnan(loss) else f"{loss:.4f}"
            note = f"step {step}/{config.steps}, loss {known}"
            tokens = step * config.batch * config.model.context
            report(config.run_id, step, config.steps, note, tokens=tokens)

    def evaluate(self, model: Transformer) -> Evaluation:
        """Evaluates on the held-out set, in smaller and smaller batches where memory lacks."""
        ranks = self.plan.ranks
        whole = max(1, EVALUATION_TOKENS // self.plan.config.model.context)
        batch = self.largest("evaluation", whole, 1)
        while True:
            self.check_lock()
            self.begin("evaluation", batch, batch < whole)
            try:
                check = partial(self.stop.check_all, ranks)
                return evaluate(model, self.held_out, batch, check, ranks)
            except (RuntimeError, MemoryError) as error:
                if not lacks_memory(error) or batch == 1 or ranks.size > 1:
                    raise
            batch //= 2
            give_back(torch.device(self.plan.options.device))

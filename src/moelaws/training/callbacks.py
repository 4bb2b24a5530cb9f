"""Callbacks between the steps of a run: progress, history, weights on the way, checkpoints."""

import math
import time
from contextlib import suppress
from typing import Any

from moelaws.files.layout import HISTORY_SO_FAR
from moelaws.records.progress import Report
from moelaws.records.tensors import is_whole
from moelaws.spec.errors import UserError
from moelaws.spec.model import MoE
from moelaws.training import checkpoint, weights
from moelaws.training.loop import Callback, Trainer, loads_of
from moelaws.training.plan import TrainingPlan

RARE = 20  # times as long as a checkpoint takes, at least, between two of them
# What a run's provenance keeps of each process before the last one
OF_A_PROCESS = (
    "started", "code", "commit", "dirty", "host", "device", "devices", "backend", "threads",
    "micro_batch",
)  # fmt: skip


class Progress(Callback):
    def __init__(self, report: Report) -> None:
        self.report = report

    def before_training(self, trainer: Trainer) -> None:
        self.after_step(trainer)

    def after_step(self, trainer: Trainer) -> None:
        config, step, loss = trainer.config, trainer.step, trainer.history.loss()
        # Losses come from the device a few steps late, so at first there is none.
        known = "-" if math.isnan(loss) else f"{loss:.4f}"
        note = f"step {step}/{config.steps}, loss {known}"
        tokens = step * config.batch * config.model.context
        self.report(config.run_id, step, config.steps, note, tokens=tokens)


class HistorySoFar(Callback):
    """Writes the history for people who watch; it may fail, because nothing else reads it."""

    def __init__(self, plan: TrainingPlan, provenance: dict[str, Any]) -> None:
        self.plan, self.last = plan, -math.inf
        self.made_by = {key: provenance[key] for key in ("host", "device", "started")}

    def after_step(self, trainer: Trainer) -> None:
        if time.monotonic() - self.last < self.plan.options.history_seconds:
            return
        self.plan.check_lock()
        with suppress(UserError):  # the disk may be full
            # It has the settled steps alone, so as not to wait for the device.
            trainer.history.write(self.plan.folders.record / HISTORY_SO_FAR, self.made_by)
        self.last = time.monotonic()


class WeightsOnTheWay(Callback):
    """Writes the weights after the steps that keep them; raises UserError on a full disk."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan = plan
        self.steps = plan.options.keep_steps if plan.options.keep_weights else ()

    def after_step(self, trainer: Trainer) -> None:
        if trainer.step not in self.steps:
            return
        whole = weights.of(trainer.model, trainer.ranks)
        if trainer.ranks.is_first:
            self.plan.check_lock()
            weights.save(self.plan.folders.weights, trainer.config, whole, trainer.step)

    def lost(self, step: int) -> int:
        """Returns the first step up to ``step`` whose weights are missing, or 0 if none are."""
        folder, run_id = self.plan.folders.weights, self.plan.config.run_id
        passed = (s for s in self.steps if s <= step)
        return next((s for s in passed if not is_whole(folder, run_id, s)), 0)


class Checkpoints(Callback):
    """Saves a run's state at intervals of wall time, and restores it.

    A save takes at most a twentieth of the time, however large the state is.

    ``provenance`` is that of this process; its ``resumed_from`` describes the processes before.
    """

    def __init__(self, plan: TrainingPlan, provenance: dict[str, Any]) -> None:
        self.plan, self.provenance = plan, provenance
        # A checkpoint must be of this run and this data.
        data = provenance["corpus_files"]["train.bin"]
        self.identity = {"run": plan.config.run_id, "data": data}
        self.earlier_seconds = 0.0  # wall time of earlier processes, up to their checkpoint
        self.began, self.last = time.perf_counter(), 0.0
        self.spent = 0.0  # seconds that the last checkpoint took
        # What processes have trained of the trunk, or of this run: run_id -> steps and seconds
        self.trained: dict[str, tuple[int, float]] = {}
        self.shared_steps, self.shared_seconds = 0, 0.0  # what those of other runs trained
        self.resumed_at = 0

    def before_training(self, trainer: Trainer) -> None:
        self.last = time.monotonic()
        self._leave_trunk(trainer)

    def after_step(self, trainer: Trainer) -> None:
        every = self.plan.options.checkpoint_seconds  # 0: after each step
        due = time.monotonic() - self.last >= (every and max(every, RARE * self.spent))
        trunk = self.plan.trunk
        if trainer.ranks.broadcast(due or (trunk is not None and trunk.is_branch(trainer.step))):
            began = time.monotonic()
            try:
                self.save(trainer)
            except UserError as error:  # the disk may have room again next time
                self.plan.log(f"{error} Training goes on.")
            self.last = time.monotonic()
            self.spent = self.last - began
        self._leave_trunk(trainer)

    def _leave_trunk(self, trainer: Trainer) -> None:
        """Leaves the trunk where this run begins to decay, or if it shares it with no other."""
        trunk = self.plan.trunk
        if trunk and not (trunk.branches and trainer.step < trainer.config.branch_step):
            trunk.leave()
            trainer.other_loads.clear()

    def share_end(self, trainer: Trainer) -> None:
        """Keeps the state of a trunk that diverged, which ends the runs that have not left it."""
        trunk = self.plan.trunk
        if trunk and trunk.carried(trainer.ranks) and trainer.step > self.resumed_at:
            try:
                self.save(trainer)
            except UserError as error:  # the others then diverge by themselves
                self.plan.log(str(error))

    def wall_seconds(self) -> float:
        """Returns the wall time of this process and of those before it, up to their checkpoint."""
        return self.earlier_seconds + time.perf_counter() - self.began

    def save(self, trainer: Trainer) -> None:
        """Writes a checkpoint, to the trunk's folder as long as this run carries the trunk.

        Raises UserError if the disk has no room for it, and TakenOver if another trainer took the
        run.
        """
        self.plan.check_lock()
        self.provenance["micro_batch"] = trainer.micro_batch
        this_process = {key: self.provenance[key] for key in OF_A_PROCESS}
        state: dict[str, Any] = {
            "trainer": trainer.state(),
            "wall_seconds": self.wall_seconds(),
            "processes": [*self.provenance["resumed_from"], this_process],
        }
        own = trainer.step - self.shared_steps, state["wall_seconds"] - self.shared_seconds
        state["trained"] = {**self.trained, self.plan.config.run_id: own}
        trunk = self.plan.trunk
        if trunk and trunk.carried(trainer.ranks):
            path = trunk.state(trainer.step)
            checkpoint.save(path, self._of_trunk(), state, trainer.ranks)
            if trainer.ranks.is_first:
                trunk.tidy(trainer.step)
        else:
            checkpoint.save(self.plan.folders.checkpoint, self.identity, state, trainer.ranks)

    def _of_trunk(self) -> dict[str, str]:
        return {**self.identity, "run": self.plan.config.trunk or ""}

    def resume(self, trainer: Trainer, kept: WeightsOnTheWay) -> None:
        """Continues from the checkpoint if it is good and no weights ``kept`` so far are gone."""
        folder, ranks = self.plan.folders.checkpoint, trainer.ranks
        state, refusal = checkpoint.load(folder, self.identity, ranks)
        if state is not None and (lost := ranks.broadcast(kept.lost(state["trainer"]["step"]))):
            state, refusal = None, f"the weights after step {lost} were not kept, or are gone"
        if refusal:
            self.plan.log(f"checkpoint refused, the run starts over: {refusal}")
        state = state or self._branch(trainer, kept)
        if state is None:
            return
        trainer.restore(state["trainer"])
        self.earlier_seconds = float(state["wall_seconds"])
        self.provenance["resumed_from"] = state["processes"]
        own = self.plan.config.run_id
        self.trained = state["trained"]
        steps, seconds = self.trained.get(own, (0, 0.0))
        self.shared_steps = trainer.step - steps
        self.shared_seconds = self.earlier_seconds - seconds
        self.resumed_at = trainer.step
        self.plan.log(
            f"resumed at step {trainer.step}/{trainer.config.steps}, "
            f"{trainer.micro_batch} sequences at a time"
        )

    def _branch(self, trainer: Trainer, kept: WeightsOnTheWay) -> Any:
        """Returns the last state of the trunk that this run can go on from; None if there is none.

        It needs counts of the experts' load for the length of this run, and the weights ``kept``.
        """
        trunk, ranks, config = self.plan.trunk, trainer.ranks, trainer.config
        if trunk is None or not trunk.carried(ranks):
            return None
        step = config.branch_step
        while step := ranks.broadcast(trunk.last(step)):
            state, refusal = checkpoint.load(trunk.state(step), self._of_trunk(), ranks)
            if refusal:
                self.plan.log(f"state of the trunk refused: {refusal}")
            if state is not None and not ranks.broadcast(kept.lost(step)):
                counted = loads_of(state["trainer"])
                if config.steps in counted or not isinstance(config.model.ffn, MoE):
                    return state
            step -= 1
        return None

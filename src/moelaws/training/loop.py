"""The training loop of one run, from top to bottom: the loop, a step, its micro-batches, state."""

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moelaws.corpus.batches import Batches
from moelaws.model.casting import casting_once
from moelaws.model.transformer import Transformer
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig
from moelaws.training.checkpoint import held, take
from moelaws.training.device import Upload, give_back, lacks_memory
from moelaws.training.expert_load import ExpertLoad, drops
from moelaws.training.history import History
from moelaws.training.optimizer import Optimizer
from moelaws.training.ranks import ALONE, Ranks, own
from moelaws.training.recorded import Measured, Recorder
from moelaws.training.schedule import rate

SETTLE = 20  # steps between fetches of the measured values from the device
# A run has diverged if its loss exceeds ln V, that of a uniform guess, by this many nats ...
WORSE_THAN_UNIFORM = 1.0
PATIENCE = 50  # ... for this many steps in a row.


class Callback:
    """What is done between the steps; a subclass overrides what it needs.

    It must hold no trainer, so that the trainer's memory is free once the trainer is dropped.
    """

    def before_training(self, trainer: "Trainer") -> None:
        """Is called before the first step, also after a resumption."""

    def after_step(self, trainer: "Trainer") -> None:
        """Is called between steps, when the state is whole, and may raise to stop."""

    def after_lack(self, trainer: "Trainer") -> None:
        """Is called if memory lacked, before the trainer tries its new, smaller micro-batch."""


class Trainer:
    """All that changes while a run trains; on a CPU ``restore`` continues it bit for bit.

    A step's gradient is summed over micro-batches of whole balance groups. Cross-entropy and z-loss
    are means over tokens, the balance loss is a mean over groups, and all groups have one size. So
    the update is that of the whole batch, up to rounding. If memory lacks, the micro-batch is
    halved, down to one group.
    """

    def __init__(
        self,
        config: RunConfig,
        model: Transformer,
        data: Batches,
        micro_batch: int | None = None,
        callbacks: Sequence[Callback] = (),
        ranks: Ranks = ALONE,
    ) -> None:
        """Takes ``micro_batch`` in sequences, a multiple of the smallest; None is the whole batch.

        ``callbacks`` are called in their order. Each of several ``ranks`` has a sharded model and
        trains on its part of every batch's groups.
        """
        self.config, self.model, self.data = config, model, data
        self.callbacks, self.ranks = callbacks, ranks
        self.groups = ranks.split(config.groups)[ranks.rank]
        self.optimizer = Optimizer(model.named_parameters(), config.optimizer, ranks, config.model)
        self.history = History()
        self.step = 0
        self.seconds = 0.0  # in the loop, summed over resumptions
        self.device = model.embedding.device
        self.upload = Upload(self.device)
        # All ranks compute equally often, because each computation exchanges what they hold.
        self.sequences = math.ceil(config.groups / ranks.size) * config.smallest_micro_batch
        self.micro_batch = micro_batch or self.sequences
        ffn = config.model.ffn
        moe = ffn if isinstance(ffn, MoE) else None
        self.coefficients = (moe.balance_loss, moe.router_z) if moe else (0.0, 0.0)
        self.by_sequence = moe is not None and moe.sequence_balance > 0
        self.jitter = moe.jitter if moe else 0.0
        self.expert_load = ExpertLoad(config.steps, moe.n_dense_layers if moe else 0, drops(moe))
        # Loads of runs that may go on from this run's states.
        self.other_loads: list[ExpertLoad] = []
        # Noise is drawn anew in each step, several devices wait for each other, and in fp32 the
        # host waits for the sizes of the experts' groups.
        waits = self.jitter or ranks.size > 1 or (moe and config.precision == "fp32")
        can_record = self.device.type == "cuda" and not waits
        # The first steps would have other bits than their recording.
        can_record = can_record and not torch.are_deterministic_algorithms_enabled()
        self.recorder = Recorder(self.optimizer.whole, can_record)

    def count_for(self, lengths: Iterable[int]) -> None:
        """Counts the experts' load for runs of other ``lengths``, too, while they are the same."""
        others = (n for n in lengths if n != self.config.steps)
        self.other_loads = list(map(self.expert_load.for_length, others))

    def run(self) -> bool:
        """Trains to the last step; returns False if the loss diverged, where the history ends."""
        for callback in self.callbacks:
            callback.before_training(self)
        while not self._diverged():
            if self.step == self.config.steps:
                self.recorder.forget()  # the evaluation may need the memory
                return True
            began = time.perf_counter()
            self.train_step()
            self.seconds += time.perf_counter() - began
            for callback in self.callbacks:
                callback.after_step(self)
        return False

    def train_step(self) -> None:
        """Trains on the next batch, and takes smaller micro-batches from now on if memory lacks."""
        config = self.config
        group = config.smallest_micro_batch
        batch = self.data.next()
        tokens = self.upload(batch[self.groups.start * group : self.groups.stop * group])
        measured = self.recorder(self._accumulated, tokens) or self._gradients(tokens)
        while measured is None:
            self.micro_batch = halved(self.micro_batch, group)
            give_back(self.device)
            for callback in self.callbacks:
                callback.after_lack(self)
            measured = self._gradients(tokens)
        losses, counts_LE = measured
        losses = self.ranks.total(losses) / self.ranks.size
        lr = config.optimizer.lr * rate(config.schedule, self.step, config.steps)
        norm = self.optimizer.step(lr)
        self.step += 1
        seen = self.step * config.batch * config.model.context
        self.history.add([self.step, seen, lr], torch.cat((losses, norm.view(1))), self.seconds)
        if counts_LE is not None:
            counts_LE = self.ranks.total(counts_LE)
            self.model.move_biases(counts_LE)
            for load in (self.expert_load, *self.other_loads):
                load.add(self.step, counts_LE)

    def _gradients(self, tokens: Tensor) -> Measured | None:
        """Accumulates the gradient of a batch (batch, context + 1).

        Returns its cross-entropy, balance and z-loss (3,) and the assignments (L, E); or None, and
        leaves no gradient, if memory lacked and the micro-batch can be smaller. The memory of the
        failed attempt is freed only when this function returns, because the error refers to it.
        """
        smallest = self.config.smallest_micro_batch
        try:
            return self._accumulated(tokens)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error) or self.micro_batch <= smallest or self.ranks.size > 1:
                raise
            self.optimizer.drop_gradients()
            return None

    def _accumulated(self, tokens: Tensor) -> Measured:
        losses, counts = torch.zeros(3, device=self.device), None
        # A sharded layer is gathered anew for each micro-batch; kept casts would hold it all.
        with casting_once(self.ranks.is_kept):
            for first in range(0, self.sequences, self.micro_batch):
                more_losses, more_counts = self._micro_batch(tokens, first)
                losses += more_losses
                if more_counts is not None:  # there are experts
                    counts = more_counts if counts is None else counts + more_counts
        return losses, counts

    def _micro_batch(self, tokens: Tensor, first: int) -> Measured:
        """Accumulates the same over the micro-batch from ``first`` on, weighted by its size.

        If this process has no sequences left but others do, it repeats some with weight 0.
        """
        group = self.config.smallest_micro_batch
        counted = len(tokens[first : first + self.micro_batch])
        first = first if counted else 0
        sequences = tokens[first : first + self.micro_batch]
        groups = self.groups[first // group : (first + len(sequences)) // group]
        balanced = len(sequences) if self.by_sequence else len(groups)
        losses = self.model.losses(sequences, balanced, self._noise(groups))
        balance, z = self.coefficients
        objective = losses.cross_entropy
        if balance:
            objective = objective + balance * losses.balance
        if z:
            objective = objective + z * losses.z
        weight = counted * self.ranks.size / self.config.batch  # gradients are means over ranks
        torch.autograd.backward(objective * weight)
        counts_LE = None if losses.counts_LE is None else losses.counts_LE * bool(counted)
        return torch.stack(losses[:3]).detach() * weight, counts_LE

    def _noise(self, groups: range) -> list[torch.Generator]:
        """Returns a generator of jitter for each group, seeded by the run's seed, step and group.

        Nothing else is random, so checkpoints hold no state of generators.
        """
        if not self.jitter:
            return []
        keys = ((self.config.seed, self.step, group) for group in groups)
        seeds = (int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) for key in keys)
        return [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def _diverged(self) -> bool:
        """Checks for divergence every ``SETTLE`` steps and at the end; cuts off what came after."""
        if self.history.unchecked < SETTLE and self.step < self.config.steps:
            return False
        self._settle()
        threshold = math.log(self.config.model.vocab_size) + WORSE_THAN_UNIFORM
        diverged = self.history.diverged_at(threshold, PATIENCE)
        if diverged is None:
            return False
        self.history.cut(diverged)
        for load in (self.expert_load, *self.other_loads):
            load.cut(diverged)
        self.step = diverged
        return True

    def _settle(self) -> None:
        """Fetches the measurements; the wait counts as training, for a device lags behind."""
        began = time.perf_counter()
        self.history.settle()
        self.seconds += time.perf_counter() - began

    def state(self) -> dict[str, Any]:
        """Returns all that the next step depends on, and what the record needs."""
        self._settle()
        return {
            "step": self.step,
            "seconds": self.seconds,
            "model": {
                name: held(p, own(p.detach()), self.ranks)
                for name, p in self.model.trained().items()
            },
            "optimizer": self.optimizer.state(),
            "history": self.history.state(),
            "load": self.expert_load.state(),
            "other_loads": {str(load.steps): load.state() for load in self.other_loads},
            # The number of steps, by which ``load`` chooses its windows.
            "steps": self.config.steps,
            "micro_batch": self.micro_batch,
            "most": self.sequences,
            "data": self.data.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continues from a ``state`` of the same data and configuration, up to the length.

        If its micro-batch had been reduced, that one is used unless this trainer's is smaller.
        """
        self.data.restore(state["data"])
        for name, parameter in self.model.trained().items():
            take(parameter, own(parameter.detach()), state["model"][name], self.ranks)
        self.optimizer.restore(state["optimizer"])
        self.history.restore(state["history"])
        self.step, self.seconds = state["step"], state["seconds"]
        loads = loads_of(state)
        self.expert_load.restore(loads.get(self.config.steps, state["load"]), self.device)
        self.other_loads = [x for x in self.other_loads if x.steps in loads and x.steps > self.step]
        for load in self.other_loads:
            load.restore(loads[load.steps], self.device)
        if state["micro_batch"] < state["most"]:  # else nothing is known of larger ones
            self.micro_batch = min(self.micro_batch, state["micro_batch"])


def loads_of(state: dict[str, Any]) -> dict[int, Any]:
    """Returns the loads of experts in a trainer's state, by the length for which each counts."""
    loads = {int(steps): load for steps, load in state["other_loads"].items()}
    return {state["steps"]: state["load"], **loads}


def halved(micro_batch: int, smallest: int) -> int:
    """Returns about half of ``micro_batch``, in whole multiples of ``smallest``."""
    groups = -(-micro_batch // smallest)
    return -(-groups // 2) * smallest

"""The training loop of one run: state, steps, divergence."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from moelaws.model.transformer import Transformer
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig
from moelaws.training.history import History
from moelaws.training.optimizer import Optimizer
from moelaws.training.schedule import rate

SETTLE = 20  # steps between fetches of the measured values from the device
WORSE_THAN_UNIFORM = 1.0  # nats above ln V, the loss of a model that knows nothing, ...
PATIENCE = 50  # ... for so many steps in a row: the run has diverged


class Data(Protocol):
    """Batches of token ids that continue from a recorded state."""

    def next(self) -> NDArray[np.int64]:
        """(batch, context + 1) token ids."""
        ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Trainer:
    """All that changes while a run trains. ``state`` and ``restore`` continue it bit for bit."""

    def __init__(self, config: RunConfig, model: Transformer, data: Data) -> None:
        self.config, self.model, self.data = config, model, data
        self.optimizer = Optimizer(model.parameters(), config.optimizer)
        self.history = History()
        self.step = 0
        self.seconds = 0.0  # in the loop, summed over resumptions
        self.device = model.embedding.device
        ffn = config.model.ffn
        self.coefficients = (ffn.load_balance, ffn.router_z) if isinstance(ffn, MoE) else (0.0, 0.0)

    def run(self, after_step: Callable[[], None] = lambda: None) -> bool:
        """Train to the last step; False when the loss diverged before, history kept up to there.

        ``after_step`` is called between steps and may raise to stop: the state is whole then.
        """
        threshold = math.log(self.config.model.vocab_size) + WORSE_THAN_UNIFORM
        while True:
            done = self.step == self.config.steps
            if done or self.step % SETTLE == 0:
                self._settle()
                diverged = self.history.diverged_at(threshold, PATIENCE)
                if diverged is not None:
                    self.history.cut(diverged)
                    self.step = diverged
                    return False
            if done:
                return True
            began = time.perf_counter()
            self._step()
            self.seconds += time.perf_counter() - began
            after_step()

    def _settle(self) -> None:
        """Fetch what was measured. The device computes behind ``_step``: the wait is training."""
        began = time.perf_counter()
        self.history.settle()
        self.seconds += time.perf_counter() - began

    def _step(self) -> None:
        config = self.config
        tokens = torch.from_numpy(self.data.next()).to(self.device)
        losses = self.model.losses(tokens, config.batch // config.balance_group)
        balance, z = self.coefficients
        objective = losses.cross_entropy
        if balance:
            objective = objective + balance * losses.balance
        if z:
            objective = objective + z * losses.z
        torch.autograd.backward(objective)
        lr = config.optimizer.lr * rate(config.schedule, self.step, config.steps)
        norm = self.optimizer.step(lr)
        self.step += 1
        measured = torch.stack((*losses, norm)).detach()
        seen = self.step * config.batch * config.model.context
        self.history.add([self.step, seen, lr], measured, self.seconds)

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, and what the record needs."""
        self._settle()
        return {
            "step": self.step,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state(),
            "history": self.history.state(),
            "data": self.data.state(),
            "rng": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from ``state`` of the same configuration and data."""
        self.data.restore(state["data"])
        self.model.load_state_dict(state["model"])
        self.optimizer.restore(state["optimizer"])
        self.history.restore(state["history"])
        torch.set_rng_state(state["rng"])
        self.step, self.seconds = state["step"], state["seconds"]

"""A callback that calls what a test gives it, and batches that need no corpus."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moelaws.training.loop import Callback


@dataclass
class Calls(Callback):
    """Calls functions, which take the trainer, after each step and where memory lacked."""

    after_step: Callable[[Any], object] = lambda trainer: None
    after_lack: Callable[[Any], object] = lambda trainer: None


class Made:
    """Batches of uniform tokens that follow from the number of the step."""

    def __init__(self, config: Any) -> None:
        self.shape = (config.batch, config.model.context + 1)
        self.vocab_size, self.step = config.model.vocab_size, 0

    def next(self) -> Any:
        self.step += 1
        return np.random.default_rng(self.step).integers(self.vocab_size, size=self.shape)

    def state(self) -> dict[str, int]:
        return {"step": self.step}

    def restore(self, state: dict[str, int]) -> None:
        self.step = state["step"]

"""A callback that calls what a test gives it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moelaws.training.loop import Callback


@dataclass
class Calls(Callback):
    """Calls functions, which take the trainer, after each step and where memory lacked."""

    after_step: Callable[[Any], object] = lambda trainer: None
    after_lack: Callable[[Any], object] = lambda trainer: None

"""The experts' load: its metrics for each layer, and its record over a run.

Shapes: L layers with experts, E experts, X = E columns, or E + 1 of which the last one counts what
was dropped.
"""

import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moelaws.accounting.balance import metrics
from moelaws.records.summary import Balance
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import MoE
from moelaws.training.columns import MadeOf, write_columns

CAPACITY_FACTOR = 1.25
WINDOWS = 20  # of steps in a run; each adds a row for each layer

COLUMNS = table_beside(__file__)  # column -> its unit and meaning


def drops(ffn: object) -> bool:
    """Returns whether such layers drop what is beyond an expert's capacity."""
    return isinstance(ffn, MoE) and ffn.capacity_factor is not None


def measures(counts_LX: NDArray[np.int64], dropping: bool) -> dict[str, NDArray[Any]]:
    """Returns the metrics of each layer, and the share of assignments that was dropped, if any."""
    counts_LE = counts_LX[:, :-1] if dropping else counts_LX
    measured = metrics(counts_LE, CAPACITY_FACTOR)
    if dropping:
        measured["dropped"] = counts_LX[:, -1] / counts_LE.sum(1)
    return measured


def balance(counts_LX: NDArray[np.int64], dropping: bool = False) -> Balance:
    """Returns the metrics averaged over the layers; the experts never used are summed."""
    by_layer = measures(counts_LX, dropping)
    never_used = int(by_layer.pop("never_used").sum())
    means = {name: float(values.mean()) for name, values in by_layer.items()}
    return Balance(**means, capacity_factor=CAPACITY_FACTOR, never_used=never_used)


class ExpertLoad:
    """Assignments by layer and expert, summed over each of ``WINDOWS`` windows of steps.

    With ``dropping`` the counts have one column more, for the assignments that were dropped.
    """

    def __init__(self, steps: int, first_layer: int, dropping: bool = False) -> None:
        self.steps, self.first_layer, self.dropping = steps, first_layer, dropping
        self.ends: list[int] = []
        self.windows: list[Tensor] = []  # (L, X) each, still on the device, so nothing waits
        self._current: Tensor | None = None  # on the device

    def for_length(self, steps: int) -> Self:
        """Returns what counts the same for a run of another length, from its first step on."""
        other = copy.deepcopy(self)
        other.steps = steps
        return other

    def add(self, step: int, counts_LX: Tensor) -> None:
        """Counts optimizer step ``step`` (from 1)."""
        # A copy, because other lengths count the same tensor, and a checkpoint holds each once.
        self._current = counts_LX.clone() if self._current is None else self._current + counts_LX
        if step * WINDOWS // self.steps > (step - 1) * WINDOWS // self.steps:
            self.ends.append(step)
            self.windows.append(self._current)
            self._current = None

    def cut(self, steps: int) -> None:
        """Drops the windows that end after ``steps`` steps."""
        self.ends = [end for end in self.ends if end <= steps]
        del self.windows[len(self.ends) :]
        self._current = None

    def state(self) -> dict[str, Any]:
        return {"ends": self.ends, "windows": self.windows, "current": self._current}

    def restore(self, state: dict[str, Any], device: torch.device) -> None:
        self.ends, self.windows = list(state["ends"]), [w.whole() for w in state["windows"]]
        current = state["current"]
        self._current = None if current is None else current.whole().to(device)

    def write(
        self, path: Path, held_out_LX: NDArray[np.int64] | None, made_of: MadeOf = None
    ) -> None:
        """Writes a row for each layer and window, then the held-out set's, if there are experts."""
        held_out = [] if held_out_LX is None else [held_out_LX]
        counts = [*(window.cpu().numpy() for window in self.windows), *held_out]
        if not counts:
            return
        layers, counts_RX = len(counts[0]), np.concatenate(counts)
        validation = np.repeat([0, 1], [len(self.windows), len(held_out)])
        steps = [*self.ends, *(self.steps for _ in held_out)]
        block = np.arange(self.first_layer, self.first_layer + layers)
        columns = {
            "validation": np.repeat(validation, layers),
            "step": np.repeat(np.array(steps, np.int64), layers),
            "layer": np.tile(block.astype(np.int64), len(counts)),
            "assignments": counts_RX[:, :-1] if self.dropping else counts_RX,
            **measures(counts_RX, self.dropping),
        }
        write_columns(path, COLUMNS, columns, made_of)

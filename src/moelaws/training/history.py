"""The measurements of each step of a run: all in memory, some of them written to Parquet."""

import math
from pathlib import Path

import torch
from torch import Tensor

from moelaws.spec.from_toml import table_beside
from moelaws.training.checkpoint import Stored
from moelaws.training.columns import MadeOf, write_rows

COLUMNS = table_beside(__file__)  # column -> its unit and meaning
LOSS = list(COLUMNS).index("loss")
ROWS = 2000  # at most about this many rows are written


class History:
    """Rows of the columns above, one per step; the newest values may still be on the device."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self._pending: list[tuple[list[float], Tensor, float]] = []
        self._seen = 0  # rows checked for divergence so far
        self._above = 0  # losses above the threshold in a row, up to that row

    def __len__(self) -> int:
        return len(self.rows) + len(self._pending)

    def add(self, before: list[float], measured: Tensor, seconds: float) -> None:
        """Adds a step: step, tokens and lr; then loss, balance, z and norm as one tensor (4,)."""
        self._pending.append((before, measured, seconds))

    def settle(self) -> None:
        """Fetches all pending values with a single wait for the device."""
        if self._pending:
            values = torch.stack([m for _, m, _ in self._pending]).tolist()
            for (before, _, seconds), value in zip(self._pending, values, strict=True):
                self.rows.append([*before, *value, seconds])
            self._pending.clear()

    @property
    def unchecked(self) -> int:
        """Returns the number of steps that ``diverged_at`` has not seen."""
        return len(self) - self._seen

    def loss(self) -> float:
        """Returns the training loss of the last settled step."""
        return self.rows[-1][LOSS] if self.rows else math.nan

    def recent_loss(self) -> float | None:
        """Returns the mean training loss over the last tenth of the steps; None if not finite."""
        last = [row[LOSS] for row in self.rows[-max(1, len(self.rows) // 10) :]]
        mean = sum(last) / len(last) if last else math.nan
        return mean if math.isfinite(mean) else None

    def diverged_at(self, threshold: float, patience: int) -> int | None:
        """Returns the step at which the settled run diverged, or None if it has not.

        A run diverges at the first loss that is not finite, or at the last of ``patience`` losses
        in a row above ``threshold``. Each row is checked once.
        """
        while self._seen < len(self.rows):
            loss = self.rows[self._seen][LOSS]
            self._seen += 1
            self._above = self._above + 1 if loss > threshold else 0
            if not math.isfinite(loss) or self._above == patience:
                return self._seen
        return None

    def cut(self, steps: int) -> None:
        """Drops what came after ``steps`` steps."""
        del self.rows[steps:]

    def state(self) -> Tensor:
        """Returns all rows as float64 (steps, columns)."""
        return torch.tensor(self.rows, dtype=torch.float64).view(-1, len(COLUMNS))

    def restore(self, state: Stored) -> None:
        self.rows = state.whole().tolist()
        self._pending.clear()
        self._seen, self._above = 0, 0

    def write(self, path: Path, made_of: MadeOf = None) -> None:
        """Writes the settled steps as Parquet with units; of many, every n-th and the last."""
        n = len(self.rows)
        every = max(1, math.ceil(n / ROWS))
        kept = [row for i, row in enumerate(self.rows, 1) if i % every == 0 or i == n]
        rows = (dict(zip(COLUMNS, row, strict=True)) for row in kept)
        write_rows(path, rows, made_of, about=COLUMNS)

"""The held-out measurement: loss by document, its clustered standard error, bits per byte, load."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moelaws.corpus.batches import Validation
from moelaws.model.casting import casting_once
from moelaws.model.head import token_losses
from moelaws.model.transformer import Transformer, assignments
from moelaws.spec.from_toml import table_beside
from moelaws.training.columns import MadeOf, write_columns
from moelaws.training.ranks import ALONE, Ranks

TOKENS = 4096  # evaluated at a time, at least
FORWARD = 4  # a GPU takes so many times what it trains on: nothing waits for a backward pass

COLUMNS = table_beside(__file__)  # column -> its unit and meaning


@dataclass(frozen=True, eq=False)
class DocumentLosses:
    """The held-out loss of each document that was evaluated; all arrays are (documents,)."""

    document: NDArray[np.int64]  # ascending
    tokens: NDArray[np.int64]
    nats: NDArray[np.float64]
    # Runs of earlier versions have neither
    bytes: NDArray[np.int64] | None = None
    domain: NDArray[np.str_] | None = None

    @classmethod
    def of(cls, loss_T: NDArray[np.float64], held_out: Validation) -> "DocumentLosses":
        """Sums the nats of the predicted tokens, (T,), over the tokens of each document."""
        document, member = np.unique(held_out.documents, return_inverse=True)
        member = member.reshape(-1)
        tokens = np.bincount(member).astype(np.int64)
        nats = np.bincount(member, loss_T).astype(np.float64)
        sizes = np.bincount(member, held_out.target_bytes.reshape(-1)).astype(np.int64)
        return cls(document, tokens, nats, sizes, held_out.domains[document])

    def write(self, path: Path, made_of: MadeOf = None) -> None:
        """Writes Parquet with units and a row for each document."""
        known = {name: values for name, values in vars(self).items() if values is not None}
        write_columns(path, COLUMNS, known, made_of)


@dataclass(frozen=True)
class Evaluation:
    """The result of a measurement."""

    loss: float  # nats per token
    loss_se: float | None  # its standard error
    bits_per_byte: float
    by_position_N: NDArray[np.float64]  # nats per token at each place in the sequences
    documents: DocumentLosses
    counts_LE: NDArray[np.int64] | None  # assignments; None for dense models
    loss_beyond: float | None = None  # nats per token beyond the context, in longer sequences


def sequences_at_once(device: str, trained: int, context: int) -> int:
    """Returns how many sequences of ``context`` tokens a cpu or cuda device evaluates at a time.

    ``trained`` is the number of tokens that it trains on at a time, which fill a GPU.
    """
    tokens = max(TOKENS, FORWARD * trained) if device == "cuda" else TOKENS
    return max(1, tokens // context)


def evaluate(
    model: Transformer,
    held_out: Validation,
    batch: int,
    check: Callable[[], None] = lambda: None,
    ranks: Ranks = ALONE,
) -> Evaluation:
    """Measures ``model`` on the held-out sequences, ``batch`` of them at a time.

    Several ``ranks`` share the batches, and each returns the whole result. ``check`` is called
    between batches and may raise to stop.
    """
    device = model.embedding.device
    loss_BN = torch.zeros(held_out.documents.shape, dtype=torch.float64, device=device)
    counts: Tensor | None = None
    starts = range(0, len(held_out.tokens), batch)
    with torch.no_grad(), casting_once(ranks.is_kept):
        # A sharded model computes on all ranks at once. A rank without a batch in the last turn
        # repeats the last batch, which does not count.
        for turn in range(0, len(starts), ranks.size):
            check()
            mine = turn + ranks.rank
            start = starts[min(mine, len(starts) - 1)]
            tokens = torch.from_numpy(held_out.tokens[start : start + batch]).to(device)
            of_targets = partial(token_losses, target_T=tokens[:, 1:].reshape(-1))
            losses_T, routings = model(tokens[:, :-1], head=of_targets)
            if mine < len(starts):
                loss_BN[start : start + batch] = losses_T.view(len(tokens), -1)
            if routings:  # of experts
                counts_LE = assignments(routings) * (mine < len(starts))
                counts = counts_LE if counts is None else counts + counts_LE
    measured_BN = ranks.total(loss_BN).cpu().numpy()
    loss_T = measured_BN.reshape(-1)
    document_T = held_out.documents.reshape(-1)
    return Evaluation(
        loss=float(loss_T.mean()),
        loss_se=clustered_se(loss_T, document_T),
        bits_per_byte=float(loss_T.sum() / math.log(2) / held_out.target_bytes.sum()),
        by_position_N=measured_BN.mean(axis=0),
        documents=DocumentLosses.of(loss_T, held_out),
        counts_LE=None if counts is None else ranks.total(counts).cpu().numpy(),
    )


def clustered_se(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> float | None:
    """Returns the standard error of the mean of ``values`` (n,) that correlate within clusters.

    It is the sandwich sqrt(m / (m - 1) * sum over clusters of (sum of residuals)^2) / n, for m
    clusters (Liang & Zeger, 1986), or None for a single cluster.
    """
    _, member = np.unique(clusters, return_inverse=True)
    sums = np.bincount(member, weights=values - values.mean())
    m = len(sums)
    if m < 2:
        return None
    return float(np.sqrt(m / (m - 1) * np.square(sums).sum()) / len(values))

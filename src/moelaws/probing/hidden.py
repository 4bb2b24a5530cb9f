"""Hidden states of kept weights: the residual stream after each layer, at held-out tokens.

Shapes: B sequences, N positions, D model width, T sampled tokens, L layers, S = L + 1 stages.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from moelaws.corpus.batches import Validation, random_order, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.transformer import Transformer
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.training.columns import write_columns
from moelaws.training.device import on_device, threads
from moelaws.training.weights import load

BATCH = 8  # sequences at a time

COLUMNS = table_beside(__file__)  # column -> its unit and meaning


@dataclass(frozen=True)
class Sample:
    """The sampled held-out tokens, by their places."""

    tokens_BN: NDArray[np.int64]  # the inputs of the sequences that hold them
    sequence_T: NDArray[np.int64]  # row of each in tokens_BN
    position_T: NDArray[np.int64]


def probe(
    weights: Path, corpus: Path, out: Path, tokens: int, seed: int = 0, device: str = "cpu"
) -> int:
    """Writes the states of ``tokens`` held-out tokens, after each layer of a kept run, to ``out``.

    The same weights, text, number and seed give the same tokens. Returns the number of rows,
    (L + 1) T. ``weights`` and ``corpus`` are folders of the run's; ``device`` is auto, cpu or cuda.
    Raises UserError where there are no weights or no such device, the corpus is another or its
    held-out text is short.
    """
    config, model = load(weights)
    data = PreparedCorpus.open(corpus)
    if data.corpus != config.corpus:
        raise UserError(f"{corpus} is not the corpus of run {config.run_id}")
    held_out = validation(data, config.evaluation.sequences, config.model.context)
    chosen = choose(held_out, tokens, seed)
    torch.set_num_threads(threads())
    states_STD = on_device(device, model.eval(), partial(hidden_states, sample=chosen))
    stages = len(states_STD)
    columns: dict[str, NDArray[Any]] = {
        "layer": np.repeat(np.arange(stages, dtype=np.int64), tokens),
        "sequence": np.tile(chosen.sequence_T, stages),
        "position": np.tile(chosen.position_T, stages),
        "token": np.tile(chosen.tokens_BN[chosen.sequence_T, chosen.position_T], stages),
        "state": states_STD.reshape(stages * tokens, -1),
    }
    write_columns(out, COLUMNS, columns, {"run": config.run_id})
    return stages * tokens


def write_none(out: Path) -> None:
    """Writes an empty table for a run without weights, which diverged or lacked memory."""
    columns = {name: np.empty(0, np.int64) for name in COLUMNS}
    write_columns(out, COLUMNS, {**columns, "state": np.empty((0, 1), np.float32)})


def choose(held_out: Validation, tokens: int, seed: int) -> Sample:
    """Draws ``tokens`` places among the held-out inputs, each at most once, if there are enough."""
    inputs_BN = held_out.tokens[:, :-1]
    if tokens > inputs_BN.size:
        raise UserError(
            f"tokens is {tokens}; the held-out set of the run has {inputs_BN.size}: ask for fewer"
        )
    place_T = np.sort(random_order(inputs_BN.size, seed, 0)[:tokens])
    sequence_T, position_T = np.divmod(place_T, inputs_BN.shape[1])
    rows, sequence_T = np.unique(sequence_T, return_inverse=True)
    return Sample(inputs_BN[rows], sequence_T.astype(np.int64), position_T.astype(np.int64))


def hidden_states(model: Transformer, sample: Sample) -> NDArray[np.float32]:
    """Returns the residual stream at the sample before and after each block, (L + 1, T, D)."""
    batches: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(sample.tokens_BN), BATCH):
            tokens_BN = torch.from_numpy(sample.tokens_BN[start : start + BATCH])
            tokens_BN = tokens_BN.to(model.embedding.device)
            x_BND = F.embedding(tokens_BN, model.embedding)
            inside = (sample.sequence_T >= start) & (sample.sequence_T < start + BATCH)
            at = (sample.sequence_T[inside] - start, sample.position_T[inside])
            stages = [x_BND[at]]
            for block in model.layers:
                x_BND, _ = block(x_BND, model.rotation, model.dtype, 1, (), tokens_BN)
                stages.append(x_BND[at])
            batches.append(torch.stack(stages).cpu())
    return torch.cat(batches, dim=1).float().numpy()

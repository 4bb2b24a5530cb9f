"""Losses of kept weights in sequences longer than those that a run was trained on.

Shapes: B sequences, Z stretches of a sequence, N positions of a stretch.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.layout import Results
from moelaws.training.device import threads
from moelaws.training.evaluation import token_losses
from moelaws.training.weights import load

BATCH = 4  # sequences at a time


def losses_by_stretch(weights: Path, results: Results, times: int) -> NDArray[np.float64]:
    """Computes the held-out loss in each stretch of sequences ``times`` as long as the context.

    A stretch is as long as the context that the run was trained on. As many tokens are read as the
    run was evaluated on. Angles of positions go on beyond those that were trained (sectional, sec
    5.2.6). ``weights`` is the folder of the run's, and ``results`` have its corpus. Returns
    (times,) nats/token, the first stretch first.

    Raises:
        UserError: where there are no weights, no corpus, or too little held-out text.
    """
    config, model = load(weights, times=times)
    data = PreparedCorpus.open(results.corpus(config.corpus.corpus_id))
    sequences = max(1, config.evaluation.sequences // times)
    tokens = validation(data, sequences, times * config.model.context).tokens
    torch.set_num_threads(threads())
    with torch.no_grad():
        losses = [
            token_losses(model, torch.from_numpy(tokens[start : start + BATCH]))[0]
            for start in range(0, sequences, BATCH)
        ]
    loss_BZN = torch.cat(losses).double().view(sequences, times, -1)
    return loss_BZN.mean(dim=(0, 2)).numpy()

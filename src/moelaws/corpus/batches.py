"""Training batches, which any process can resume at any step, and the fixed held-out set."""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.corpus.shards import PreparedCorpus
from moelaws.spec.errors import UserError

SHUFFLES = 1 << 40  # the first of the streams that shuffle documents; epochs have those below


class Batches:
    """Windows of the training tokens, in a new random order in each epoch.

    A window is ``context`` + 1 consecutive tokens: inputs ``[:, :-1]``, targets ``[:, 1:]``. In
    an epoch each token is a target at most once; only the last, incomplete window is left out.
    Step t takes the windows at positions [t batch, (t+1) batch) of the order: resuming is free.
    """

    def __init__(
        self, corpus: PreparedCorpus, batch: int, context: int, seed: int, max_epochs: float = 1.0
    ) -> None:
        """Raises UserError if the text is shorter than one window."""
        self.corpus, self.batch, self.context = corpus, batch, context
        self.max_epochs = max_epochs
        self.step = 0
        self.windows = (len(corpus.train) - 1) // context
        if self.windows < 1:
            raise UserError(
                f"{corpus.folder}: {len(corpus.train)} training tokens are fewer than one "
                f"context of {context}; add text or shorten model.context"
            )
        # The order of each epoch, (windows,); a batch may be of two.
        self._order = lru_cache(maxsize=2)(partial(random_order, self.windows, seed))

    def check(self, steps: int) -> None:
        """Raises UserError if ``steps`` steps need more than ``max_epochs`` passes."""
        needed, allowed = steps * self.batch, self.max_epochs * self.windows
        if needed > allowed * (1 + 1e-9):
            raise UserError(
                f"{self.corpus.folder}: {steps} steps of {self.batch} x {self.context} tokens are "
                f"{needed / self.windows:.3g} passes over {self.windows * self.context:,} training "
                f"tokens; max_epochs is {self.max_epochs:g}: raise it, add text or lower the budget"
            )

    def next(self) -> NDArray[np.int64]:
        """Returns the tokens of the next step, (batch, context + 1)."""
        self.check(self.step + 1)
        position = np.arange(self.step * self.batch, (self.step + 1) * self.batch)
        epoch, place = np.divmod(position, self.windows)
        window = np.empty(self.batch, np.intp)
        for e in np.unique(epoch):
            window[epoch == e] = self._order(int(e))[place[epoch == e]]
        self.step += 1
        return _windows(self.corpus.train, window * self.context, self.context)

    def state(self) -> dict[str, Any]:
        """Returns what ``restore`` needs, as JSON data."""
        return {"step": self.step}

    def restore(self, state: dict[str, Any]) -> None:
        """Continues where ``state`` was taken; a checkpoint says of which run and data it is."""
        self.step = int(state["step"])


def random_order(n: int, seed: int, stream: int) -> NDArray[np.intp]:
    """Returns 0 to n - 1 in a random order, (n,), which is the same in every version of NumPy.

    NumPy promises to keep the raw bits of a generator, but not what permutation() makes of them.
    """
    bits = np.random.Philox(key=[seed, stream]).random_raw(n)
    return np.argsort(np.asarray(bits), kind="stable")


def shuffled(
    tokens: NDArray[np.unsignedinteger[Any]], end_of_document: int, seed: int
) -> NDArray[np.unsignedinteger[Any]]:
    """Returns ``tokens`` (n,), with those of each document in a random order by ``seed``.

    The ends of documents stay where they are. The whole text is copied to memory.
    """
    mixed = np.array(tokens)
    ends = [*np.flatnonzero(mixed == end_of_document).tolist(), len(mixed)]
    for document, (before, end) in enumerate(pairwise([-1, *ends])):
        here = slice(before + 1, end)
        mixed[here] = mixed[here][random_order(end - before - 1, seed, SHUFFLES + document)]
    return mixed


@dataclass(frozen=True, eq=False)
class Validation:
    """The held-out set: n windows, the same ones for every run with this corpus and context."""

    tokens: NDArray[np.int64]  # (n, context + 1)
    documents: NDArray[np.int64]  # (n, context): the document of each target token
    target_bytes: NDArray[np.int64]  # (n, context): the bytes of text that each target stands for
    domains: NDArray[np.str_]  # (documents,): the folder of the text that each comes from


def validation(corpus: PreparedCorpus, sequences: int, context: int) -> Validation:
    """Returns ``sequences`` windows without overlap, spread evenly over the validation documents.

    Raises UserError if the validation text is too short for that many.
    """
    last = len(corpus.validation) - 1
    if sequences * context > last:
        raise UserError(
            f"{corpus.folder}: {len(corpus.validation)} validation tokens hold "
            f"{max(last, 0) // context} sequences of {context}; evaluation.sequences is "
            f"{sequences}: lower it, raise corpus.validation or add text"
        )
    starts = np.arange(sequences) * last // sequences
    tokens = _windows(corpus.validation, starts, context)
    positions = starts[:, None] + 1 + np.arange(context)
    documents = np.searchsorted(corpus.validation_starts, positions, side="right") - 1
    target_bytes = corpus.token_bytes[tokens[:, 1:]]
    return Validation(tokens, documents, target_bytes, corpus.validation_domains)


def _windows(
    shard: NDArray[np.unsignedinteger[Any]], starts: NDArray[np.intp], context: int
) -> NDArray[np.int64]:
    tokens: NDArray[np.int64] = shard[starts[:, None] + np.arange(context + 1)].astype(np.int64)
    return tokens

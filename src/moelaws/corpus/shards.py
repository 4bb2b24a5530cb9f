"""A prepared corpus on disk: memory-mapped token shards, checked against their hashes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moelaws.corpus.sources import file_digest
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.layout import META, TOKENIZER
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError

BOUNDARIES = "validation_documents.npy"
DOMAINS = "validation_domains.npy"
SHARDS = {"train": "train.bin", "validation": "validation.bin"}


@dataclass(frozen=True, eq=False)
class PreparedCorpus:
    """Tokens of both splits, read only when needed."""

    folder: Path
    corpus: Corpus
    meta: dict[str, Any]
    train: NDArray[np.unsignedinteger[Any]]  # (tokens,), a memory map
    validation: NDArray[np.unsignedinteger[Any]]  # (tokens,), a memory map
    validation_starts: NDArray[np.int64]  # (documents + 1,): where each begins, and the end
    # (documents,): the outermost folder of each; empty where an earlier version prepared the text
    validation_domains: NDArray[np.str_]
    token_bytes: NDArray[np.int64]  # (V,): how many bytes each token stands for

    @classmethod
    def open(cls, folder: Path, training: bool = True) -> Self:
        """Opens a folder that ``prepare`` made.

        Raises UserError if a file is not what was written. Without ``training`` the large one with
        the tokens to train on, which must not be read then, may be.
        """
        path = folder / META
        if not path.exists():
            raise UserError(
                f"{folder} holds no prepared corpus, for {META} is missing; `moelaws corpus` "
                "prepares one"
            )
        meta = read_json(path)
        try:
            corpus = parse(Corpus, meta["corpus"], path)
            for name in meta["files"]:
                if training or name != SHARDS["train"]:
                    seal.check(folder / name)
            dtype = np.dtype("<u2" if corpus.vocab_size <= 1 << 16 else "<u4")
            shards = {
                split: np.memmap(folder / name, dtype, mode="r", shape=(meta[split]["tokens"],))
                for split, name in SHARDS.items()
            }
            starts = np.load(folder / BOUNDARIES, allow_pickle=False)
            domains = np.full(len(starts) - 1, "")
            if DOMAINS in meta["files"]:
                domains = np.load(folder / DOMAINS, allow_pickle=False)
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise UserError(
                f"{folder} is damaged ({error!r}); delete it and prepare it again"
            ) from None
        token_bytes = Tokenizer.load(folder / TOKENIZER).token_bytes
        splits = shards["train"], shards["validation"]
        return cls(folder, corpus, meta, *splits, starts, domains, token_bytes)

    @property
    def shard_hashes(self) -> dict[str, str]:
        """Returns file name -> SHA-256 of what a run's losses follow from, for its provenance."""
        files = self.meta["files"].items()
        return {name: record["sha256"] for name, record in files if name != DOMAINS}


def file_record(path: Path) -> dict[str, Any]:
    """Returns the size and SHA-256 of a file, as meta.json holds them."""
    return {"bytes": path.stat().st_size, "sha256": file_digest(path)}

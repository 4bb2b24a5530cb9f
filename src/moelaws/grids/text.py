"""The project's text as the points of a grid see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from moelaws.corpus.sources import DatasetSource, Sources
from moelaws.corpus.tokenizer import Pretrained
from moelaws.files.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus, FolderDataset, HubDataset, Text
from moelaws.spec.project import Project


@dataclass(frozen=True)
class CorpusChoice:
    """The project's settings of the text; the grid adds the vocabulary unless it is pretrained."""

    source: Text | HubDataset | FolderDataset
    validation: float
    pretrained: Pretrained | None = None
    name: str = ""  # what tables call the text


def choose_corpus(
    project: Project, sources: Sources | DatasetSource, root: Path = Path(), name: str = ""
) -> CorpusChoice:
    """Returns the project's choice, with the identity of ``sources`` as its text.

    Its ``name`` is that of the sources by default.
    """
    return CorpusChoice(
        source=sources.identity(Results(root / "results").corpus("digests.json")),
        validation=project.validation,
        pretrained=Pretrained.read(root / project.tokenizer) if project.tokenizer else None,
        name=name or sources.name,
    )


def with_vocabulary(point: Mapping[str, Any], choice: CorpusChoice) -> dict[str, Any]:
    """Returns ``point``, with the size of the vocabulary if the tokenizer is pretrained."""
    if choice.pretrained is None:
        return dict(point)
    if "vocab_size" in point:
        choice.pretrained.require(point["vocab_size"])
    return {**point, "vocab_size": choice.pretrained.vocab_size}


@lru_cache
def corpus_of(choice: CorpusChoice, vocab_size: int) -> Corpus:
    data = {
        "source": choice.source,
        "vocab_size": vocab_size,
        "tokenizer": choice.pretrained and choice.pretrained.digest,
        "validation": choice.validation,
    }
    return parse(Corpus, data, "corpus")

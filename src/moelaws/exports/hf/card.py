"""The model card of an exported run, from its record."""

from typing import Any

import yaml

from moelaws.accounting.parameters import count_parameters
from moelaws.records.runs import flatten
from moelaws.records.summary import RunSummary
from moelaws.spec.corpus import Corpus, FolderDataset, HubDataset
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig


def card(
    config: RunConfig,
    summary: RunSummary,
    provenance: dict[str, Any],
    architecture: str,
    end_of_document: str,
) -> str:
    """Returns README.md for a completed run.

    ``architecture`` is the class of transformers; ``end_of_document`` the text of that token.
    """
    model = config.model
    kind = "a Mixture-of-Experts" if isinstance(model.ffn, MoE) else "a dense"
    parameters = count_parameters(model)
    heading = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["moelaws", "scaling-laws", *(["moe"] if isinstance(model.ffn, MoE) else [])],
    }
    tokenizer = "The tokenizer is a byte-level BPE that was trained on the same text."
    if digest := config.corpus.tokenizer:
        tokenizer = f"The tokenizer is a published one, a file with the SHA-256 digest `{digest}`."
    settings = flatten(config.model_dump(mode="json", exclude={"corpus"}))
    rows = [f"| `{key}` | {value} |" for key, value in settings.items() if value is not None]
    rows_of_settings = "\n".join(rows)
    return f"""---
{yaml.safe_dump(heading, sort_keys=False)}---

# Run {config.run_id} of a scaling-law sweep

This is {kind} language model that `moelaws` trained as one point of a sweep. It is a
research artefact: it was trained to measure a loss, not to be used. Nobody has looked at what it
writes, and it may repeat its training text.

## What was measured

| | |
|-|-|
| held-out loss | {_measured(summary, summary.loss)} nats/token |
| the same per byte | {_measured(summary, summary.bits_per_byte)} bits/byte |
| mean training loss at the end | {_number(summary.train_loss)} nats/token |
| training tokens | {summary.tokens:,}, which are {summary.epochs:.3g} passes over the text |

The number after ± is the standard error, clustered by document; per byte it is scaled as the loss
is. The held-out loss was measured in the training's {config.precision}, over
{config.evaluation.sequences:,} sequences of {model.context:,} tokens that begin anywhere in a
document.

## The text

{_text(config.corpus)}
{tokenizer} The corpus has the identity `{config.corpus.corpus_id}`.

This card names no licence: what the text allows is for whoever publishes the model to find out.

## The model

| | |
|-|-|
| architecture in transformers | `{architecture}` |
| parameters | {parameters.total:,}, of which {parameters.active:,} are active for a token |

The weights are in fp32, as they were kept at the end of the training.

## The training

| | |
|-|-|
| code | {_code(provenance)} |
| run | `{config.run_id}` |
{rows_of_settings}

## How to read text with it

The vocabulary has {model.vocab_size:,} entries. The last one, `{end_of_document}`, ends a document.
In training it stood between documents, so a prompt that begins a document begins with it. The
tokenizer adds it to no text by itself.

A literal `{end_of_document}` in a text is read as text, as it was in training. It is read as the
end of a document where you ask for that, `tokenizer(text, split_special_tokens=False)`, and by
programs that read `tokenizer.json` alone.
"""


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.5g}"


def _measured(summary: RunSummary, value: float | None) -> str:
    """Returns the loss, or that per byte, with the loss' standard error in their proportion."""
    if not (summary.loss and summary.loss_se is not None and value is not None):
        return _number(value)
    return f"{_number(value)} ± {summary.loss_se * value / summary.loss:.2g}"


def _text(corpus: Corpus) -> str:
    source = corpus.source
    if isinstance(source, HubDataset):
        subset = f", subset `{source.subset}`" if source.subset else ""
        return (
            f"The model was trained on the column `{source.column}` of the data set "
            f"`{source.name}` at commit `{source.commit}`{subset}, split `{source.split}`."
        )
    what = "a data set in a folder" if isinstance(source, FolderDataset) else "text files"
    return f"The model was trained on {what} with the SHA-256 digest `{source.digest}`."


def _code(provenance: dict[str, Any]) -> str:
    commit = provenance.get("commit")
    version = f"moelaws {provenance.get('moelaws', 'of an unknown version')}"
    if commit is None:
        return f"{version}, at no commit"
    changed = ", with changes since" if provenance.get("dirty") else ""
    return f"{version} at commit `{commit}`{changed}"

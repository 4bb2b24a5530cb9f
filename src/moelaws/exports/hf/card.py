"""The model card of an exported run, from its record."""

from pathlib import Path
from typing import Any

from moelaws.accounting.parameters import count_parameters
from moelaws.records.runs import flatten
from moelaws.records.summary import RunSummary
from moelaws.spec.corpus import Corpus, FolderDataset, HubDataset
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig

TEMPLATE = Path(__file__).with_suffix(".md")


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
    kind, tag = (
        ("a Mixture-of-Experts", "- moe\n") if isinstance(model.ffn, MoE) else ("a dense", "")
    )
    tokenizer = "The tokenizer is a byte-level BPE that was trained on the same text."
    if digest := config.corpus.tokenizer:
        tokenizer = f"The tokenizer is a published one, a file with the SHA-256 digest `{digest}`."
    settings = flatten(config.model_dump(mode="json", exclude={"corpus"}))
    rows = [f"| `{key}` | {value} |" for key, value in settings.items() if value is not None]
    return TEMPLATE.read_text(encoding="utf-8").format(
        config=config,
        summary=summary,
        kind=kind,
        architecture=architecture,
        end_of_document=end_of_document,
        parameters=count_parameters(model),
        tag=tag,
        loss=_measured(summary, summary.loss),
        bits_per_byte=_measured(summary, summary.bits_per_byte),
        train_loss=_number(summary.train_loss),
        text=_text(config.corpus),
        tokenizer=tokenizer,
        code=_code(provenance),
        rows_of_settings="\n".join(rows),
    )


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

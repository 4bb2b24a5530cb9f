"""The model card of an exported run, from its record."""

from pathlib import Path
from typing import Any

from moelaws.accounting.parameters import count_parameters
from moelaws.records.runs import flatten
from moelaws.records.summary import RunSummary
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig

CODE = ("moelaws", "commit", "dirty")  # of the provenance, which also names the machine
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
    settings = flatten(config.model_dump(mode="json"))
    settings |= {f"code.{name}": provenance.get(name) for name in CODE}
    rows = [
        f"| `{key}` | {str(value).replace('|', '&#124;')} |"
        for key, value in settings.items()
        if value is not None
    ]
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
        rows_of_settings="\n".join(rows),
    )


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.5g}"


def _measured(summary: RunSummary, value: float | None) -> str:
    """Returns the loss, or that per byte, with the loss' standard error in their proportion."""
    if not (summary.loss and summary.loss_se is not None and value is not None):
        return _number(value)
    return f"{_number(value)} ± {summary.loss_se * value / summary.loss:.2g}"

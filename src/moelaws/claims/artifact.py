"""The page by which somebody else makes the verdicts again: commands, costs, expected values."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from moelaws import __version__
from moelaws.claims.base import JudgedStudy
from moelaws.claims.page import basis
from moelaws.spec.words import joined, without_tags

_PAGE = Path(__file__).with_suffix(".md")


def page(
    verdicts: Mapping[str, JudgedStudy],
    runs: pd.DataFrame,
    origins: Sequence[Mapping[str, Any]],
    disk: float,
    tier: str,
) -> str:
    """Returns the Markdown of judged studies, by the command that makes each study's verdicts.

    ``runs`` has the rows of the trained runs behind them, ``origins`` the provenance of each, and
    ``disk`` the bytes of their records.
    """
    origins = origins or [{}]
    between_seeds = runs["L_seed_sd"].median() if "L_seed_sd" in runs else float("nan")
    spread = f" Between seeds losses differ by {between_seeds:.2g} nats (standard deviation)."
    text = _PAGE.read_text(encoding="utf-8").format(
        tier=tier,
        version=__version__,
        commits=_all(f"`{one.get('commit')}`" for one in origins),
        corpora=_all(runs["corpus"]),
        hardware=_all(
            f"{one.get('cpu')}, {one.get('device')}, {one.get('system')}" for one in origins
        ),
        software=_all(
            f"Python {one.get('python')}, torch {one.get('packages', {}).get('torch')}"
            for one in origins
        ),
        hours=runs["seconds"].sum() / 3600,
        memory=runs["peak_memory"].max() / 1e9,
        disk=disk / 1e9,
        spread=spread if between_seeds > 0 else "",
    )
    lines = [text]
    for command, study in verdicts.items():
        own = runs[runs["study"] == study["study"]]
        minutes = own["seconds"].sum() / 60
        trained = (
            f" {len(own)} runs, {minutes:.3g} minutes one after the other." if len(own) else ""
        )
        lines += [
            f"## {study['title']}",
            "",
            f"{basis(study['source'], study['runs'])}{trained}",
            "",
            f"```console\n$ {command}\n```",
            "",
            "| claim | figure | verdict | value | 90 % interval | unit |",
            "|-|-|-|-|-|-|",
        ]
        for claim in study["claims"]:
            value, *ends = (
                "" if claim[key] is None else f"{claim[key]:.4g}"
                for key in ("value", "low", "high")
            )
            cells = (
                claim["statement"],
                claim["figure"],
                claim["verdict"],
                value,
                f"{ends[0]} to {ends[1]}" if all(ends) else "",
                claim["unit"],
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return without_tags("\n".join(lines))


def _all(words: Iterable[str]) -> str:
    return joined(dict.fromkeys(words))

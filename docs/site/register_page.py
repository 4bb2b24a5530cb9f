"""The page of the register of public runs, from what `moelaws import --list` says of it."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from mkdocs.structure.files import File, Files
from text import code, plain, table

from moelaws.cli import cli

PAGE = "reference/register.md"


def on_files(files: Files, *, config: Any) -> None:
    files.append(File.generated(config, PAGE, content="\n\n".join(_page()) + "\n"))


def _page() -> list[str]:
    done = CliRunner().invoke(cli, ["import", "--list", "--json"], catch_exceptions=False)
    register = json.loads(done.output)["register"]
    rows = [
        (
            f"[`{runs['name']}`](#{runs['name']})",
            plain(runs["what"]),
            f"{runs['runs']:,}",
            " to ".join(f"{C:.3g}" for C in runs["C"]),
            plain(runs["licence"]),
        )
        for runs in register
    ]
    parts = [
        "# Public runs",
        "`moelaws import NAME` fetches the files of one of these tables from where they were "
        "published, checks them, and makes a study's table of them. [Import runs](../importing.md) "
        "tells how. This repository has no file of them: who calls the command fetches them, under "
        "the licence that is named.",
        table(("name", "what", "runs", "C (FLOP)", "licence"), rows),
    ]
    for runs in register:
        parts += [f"## {runs['name']}", f"{plain(runs['attribution'])}.", plain(runs["losses"])]
        parts += ["What the source does not say is assumed:"]
        parts += ["\n".join(f"- {plain(sentence)}" for sentence in runs["assumed"])]
        files = [
            (f"[{plain(file['file'])}]({file['url']})", code(file["sha256"]) or "no digest known")
            for file in runs["files"]
        ]
        parts += [table(("file", "SHA-256"), files)]
    return parts

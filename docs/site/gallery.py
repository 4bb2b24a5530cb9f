"""Every figure and table of the studies: the published picture, or the command that draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from navigation import expand
from text import plain, table

from moelaws.spec.project import load_study, study_names
from moelaws.spec.study import Figure, PaperTable, Study

FOLDER = "reference/gallery/"
EVIDENCE = "evidence/figures"  # the tier `workstation`, published
PUBLISHED = "tier=workstation corpus=environment "  # how that tier is asked for


def on_config(config: Any) -> None:
    expand(config, FOLDER, study_names())


def on_files(files: Files, *, config: Any) -> None:
    docs, rows = Path(config.docs_dir), []
    for name in study_names():
        study = load_study(name)
        content = "\n\n".join(_page(study, docs))
        files.append(File.generated(config, f"{FOLDER}{name}.md", content=content + "\n"))
        shown = sum(_published(docs, study, entry).exists() for entry in study.pictures)
        counts = [str(n) for n in (len(study.figures), len(study.tables), shown)]
        rows.append((f"[{name}]({name}.md)", plain(study.title), *counts))
    content = _index(rows)
    files.append(File.generated(config, f"{FOLDER}index.md", content=content))


def _index(rows: list[tuple[str, ...]]) -> str:
    head = ("study", "what it asks", "figures", "tables", "shown from runs trained here")
    return (
        "# Every figure\n\nA page for each study shows all its figures and tables. Where runs of "
        "[the published evidence](../../evidence/README.md) made one, it stands there. For the "
        "others the page has the caption and the command that makes it from your own runs. "
        "[Coverage](../../coverage.md) lists them by the papers' numbers.\n\n"
        + table(head, rows)
        + "\n\n## The outlook\n\nThis picture is of no paper: it shows what the fits and the laws "
        "advise beyond the largest budget of the published runs. [Larger budgets]"
        "(../../evidence/outlook.md) explains it.\n\n"
        "![Advice for larger budgets](../../evidence/outlook.png)\n"
    )


def _published(docs: Path, study: Study, entry: Figure | PaperTable) -> Path:
    suffix = "png" if isinstance(entry, Figure) else "md"
    return docs / EVIDENCE / study.study / f"{entry.name}.{suffix}"


def _page(study: Study, docs: Path) -> list[str]:
    parts = [f"# {study.study}", f"{plain(study.title)}."]
    for entry in (*study.figures, *study.tables):
        published = _published(docs, study, entry)
        parts.append(f"## {entry.name}")
        if published.exists():
            parts.append(_shown(study, entry, published))
        parts += [plain(entry.caption), *_notes(study, entry), _command(study, entry, published)]
    return parts


def _shown(study: Study, entry: Figure | PaperTable, published: Path) -> str:
    if isinstance(entry, PaperTable):  # its first line repeats the caption
        return published.read_text().partition("\n\n")[2].strip()
    target = f"../../{EVIDENCE}/{study.study}/{published.name}"
    return f"[![{study.study}, {entry.name}]({target})]({target})"


def _notes(study: Study, entry: Figure | PaperTable) -> list[str]:
    notes = []
    refs = dict.fromkeys(fit.law for fit in study.fits if fit.name in entry.fits)
    if refs:
        links = [f"[`{ref}`](../laws/{ref.partition(':')[0]}.md)" for ref in refs]
        notes.append(f"It rests on {'fits' if len(links) > 1 else 'a fit'} of {', '.join(links)}.")
    if claims := [claim for claim in study.claims if claim.figure == entry.name]:
        told = " ".join(plain(claim.statement) for claim in claims)
        notes.append(f"What the paper claims by it: {told}")
    return notes


def _command(study: Study, entry: Figure | PaperTable, published: Path) -> str:
    tier = "workstation" if published.exists() else "demo"
    suffix = "png" if isinstance(entry, Figure) else "md"
    target = f"results/{tier}/figures/{study.study}/{entry.name}.{suffix}"
    tier_and_text = PUBLISHED if published.exists() else ""
    config = f"--config {tier_and_text}studies={study.study}"
    return f"```text\nsnakemake --cores all {target} \\\n  {config}\n```"

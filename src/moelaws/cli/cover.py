"""``moelaws cover``: the first page of the report, which names the digest of all that it shows."""

import hashlib
from pathlib import Path

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import FILE, INPUT, Paths, option
from moelaws.files import seal
from moelaws.files.atomic import read_json, write_page


@click.command(name="cover", cls=JsonCommand)
@click.argument("files", nargs=-1, type=INPUT)
@option(
    "--text",
    "The page's text (reStructuredText), which the digest follows.",
    INPUT,
    required=True,
)
@option("--out", "The page to write (.rst).", FILE, required=True)
def command(files: Paths, text: Path, out: Path) -> Answer:
    """Write the report's first page: what it shows, and the digest of the whole.

    FILES are the records of its figures and paper tables (.json), the verdicts on its claims and
    the contests of laws. Each names the digests of what it was made of, so the digest over all of
    them stands for everything behind the report.
    """
    lines, unverified = [], 0
    for path in sorted(files):
        read_json(path)  # refuses a damaged file, and one that is no record
        state, digest = seal.inspect(path)
        lines.append(f"{digest}  {path.as_posix()}\n")
        unverified += state == "unverified"
    whole = hashlib.sha256("".join(lines).encode()).hexdigest()
    unsealed = f" {unverified} of these files have no seal." if unverified else ""
    footer = (
        f"This report shows {len(files)} figures, paper tables, lists of verdicts and contests of "
        f"laws. The digest of the whole is ``{whole}``: the SHA-256 of the list of their records "
        f"and digests.{unsealed} "
        "``moelaws verify`` reads everything again and says what is no longer what it was, and "
        "``moelaws show FILE`` leads from a figure back to its runs, their code and text.\n"
    )
    write_page(out, f"{text.read_text(encoding='utf-8').rstrip()}\n\n----\n\n{footer}")
    about = {"page": str(out), "files": len(files), "unverified": unverified, "digest": whole}
    return about, f"{out}: digest of the whole {whole}"

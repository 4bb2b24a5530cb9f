"""``moelaws archive``: a finished sweep as one file, and the verification of such a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moelaws.cli.output import check_out, json_option, print_json
from moelaws.cli.project import override_options
from moelaws.spec.errors import UserError, or_nearest

_VERIFIED = (
    "every file is what was written; none is missing, none was added. This does not tell whether "
    "the sweep was up to date: unpacked in a clone, `snakemake -n` does"
)


@click.command(name="archive")
@click.argument("studies", metavar="[STUDY]...", nargs=-1)
@click.option(
    *("--to", "out"),
    type=click.Path(path_type=Path),
    metavar="FILE.zip",
    help="Write the archive to this file.",
)
@click.option(
    *("--check", "checked"),
    type=click.Path(path_type=Path),
    metavar="FILE.zip",
    help="Verify the checksum of each file in this archive instead.",
)
@click.option("--force", is_flag=True, help="Replace the file of --to where it exists.")
@override_options
@json_option
def command(
    studies: tuple[str, ...],
    out: Path | None,
    checked: Path | None,
    force: bool,
    overrides: dict[str, Any],
    as_json: bool,
) -> None:
    """Write a finished sweep of each STUDY, of all chosen studies by default, to one ZIP file.

    It holds the configuration, the pinned packages, the commit, the record of each run, tables,
    fits, figures, claims, pages and checksums, and a README.txt that says how to use it. Unpacked
    in a clone it is a finished sweep to Snakemake. Neither the text nor its tokens are in it.

    \b
    moelaws archive sparsity --to sparsity.zip
    moelaws archive --check sparsity.zip
    """
    if (out is None) == (checked is None):
        raise UserError("give --to FILE.zip to write an archive, or --check FILE.zip to verify one")
    from moelaws.records import archive
    from moelaws.records.progress import reporting

    if checked is not None:
        if studies or force or overrides:
            raise UserError("--check verifies one file and takes no study and no other option")
        with reporting() as report:
            manifest = archive.check(checked, report)
        path, words = checked, _VERIFIED
    else:
        assert out is not None
        check_out(out, ".zip", option="--to")
        if out.exists() and not force:
            raise UserError(f"--to is {str(out)!r}, which exists; --force replaces it")
        manifest = _write(out, studies, overrides)
        path, words = out, "written; `moelaws archive --check` verifies it"
    if as_json:
        print_json(manifest)
        return
    size = sum(file["bytes"] for file in manifest["files"].values())
    stale = manifest["stale_runs"]
    click.echo(
        f"{path}: {', '.join(manifest['studies'])}, tier {manifest['tier']}: {manifest['runs']} "
        f"runs{f' ({stale} of them by other training code)' if stale else ''}, "
        f"{len(manifest['files'])} files, {size / 1e6:.1f} MB unpacked; {words}"
    )


def _write(out: Path, names: tuple[str, ...], overrides: dict[str, Any]) -> dict[str, Any]:
    from moelaws.records import archive
    from moelaws.records.progress import reporting
    from moelaws.workflow.archive import Sweep
    from moelaws.workflow.archive_text import CHANGES, COMMIT, readme
    from moelaws.workflow.checkout import Checkout
    from moelaws.workflow.jobs import Jobs

    jobs = Jobs.load(overrides)
    known = {name: key for key, s in jobs.studies.items() for name in (key, s.reference)}
    for name in names:
        if name not in known:
            raise UserError(
                f"{name!r} is not among the studies of this sweep"
                f"{or_nearest(name, jobs.studies, 'they are')}; --set studies=... chooses others"
            )
    chosen = tuple(dict.fromkeys(known[name] for name in names)) or tuple(jobs.studies)
    sweep = Sweep(jobs, chosen, overrides)
    files: dict[str, Path | bytes] = {**sweep.files()}
    checkout = Checkout.present()
    files["README.txt"] = readme(sweep, checkout).encode()
    files[COMMIT] = f"{checkout.commit or 'unknown'}\n".encode()
    if checkout.patch:
        files[CHANGES] = checkout.patch
    with reporting() as report:
        return archive.write(out, files, sweep.about(checkout), report)

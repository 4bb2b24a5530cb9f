"""``moelaws why``: what a call of snakemake would run, and why each job."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click

from moelaws.cli.answers import JsonCommand, print_json
from moelaws.spec.errors import UserError

# How the lines begin that Snakemake prints at every call.
USUAL = ("Using ", "Assuming ", "Building DAG")
SHOWN = 3  # files that each reason names
# How Snakemake begins a reason -> the reason in plain words.
REASONS = {
    "Missing output files": "does not exist yet",
    "Updated input files": "changed since it was made",
    "Input files updated by another job": "is made anew before it",
    "Set of input files has changed since last execution": "it reads other files than before",
    "Params have changed since last execution": "its parameters changed",
    "Forced execution": "the call forces it",
}


@click.command(name="why", context_settings={"ignore_unknown_options": True}, cls=JsonCommand)
@click.argument("words", nargs=-1, metavar="[TARGET]... [-- SNAKEMAKE_OPTION...]")
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Say which jobs `snakemake TARGET...` would run, and why each of them.

    A TARGET is a file below results/, or a rule such as tables; the default is the rule all.
    Further words go to snakemake, such as --config tier=gpu. Nothing is run.
    """
    call = [sys.executable, "-m", "snakemake", *words]
    options = ["--dry-run", "--cores", "1", "--quiet", "host"]
    done = subprocess.run([*call, *options], capture_output=True, text=True)
    text = done.stdout + "\n" + done.stderr
    lines = text.splitlines()
    if done.returncode:
        message = [line.strip() for line in lines if line.strip() and not line.startswith(USUAL)]
        raise UserError(message[-1].removeprefix("moelaws: "))
    jobs = list(_jobs(text))
    if as_json:
        print_json(jobs)
        return
    for line in lines:
        if line.startswith("moelaws: "):
            click.echo(line.removeprefix("moelaws: "))
    for job in jobs:
        click.echo(f"{job['job']}: {'; '.join(job['reasons'])}")
    if not jobs:
        click.echo("nothing would run: all is there, and as it was asked for")


def _jobs(text: str) -> Iterator[dict[str, Any]]:
    """Yields the jobs of a dry run: what each is called, and its reasons in words."""
    for block in re.split(r"\n(?=(?:local)?rule )", text)[1:]:
        lines = block.split("\n\n")[0]
        rule = re.match(r"(?:local)?rule (\w+):", lines)
        reason = re.search(r"^    reason: (.*)$", lines, re.M)
        wildcards = re.search(r"^    wildcards: (.*)$", lines, re.M)
        if rule is None or reason is None:
            continue
        names = [pair.partition("=")[2] for pair in (wildcards[1] if wildcards else "").split(", ")]
        job = " ".join([rule[1], *filter(None, names)])
        yield {"job": job, "reasons": [_in_words(one) for one in reason[1].split("; ")]}


def _in_words(reason: str) -> str:
    """Returns one of Snakemake's reasons in plain words; an unknown reason stays as it is."""
    start, _, rest = reason.partition(":")
    if start not in REASONS:
        return reason
    files = [file.strip() for file in rest.split(",") if file.strip()]
    more = [f"{len(files) - SHOWN} more"] if len(files) > SHOWN else []
    names = ", ".join([*files[:SHOWN], *more])
    return f"{names} {REASONS[start]}".strip()

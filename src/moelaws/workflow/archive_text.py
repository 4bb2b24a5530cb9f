"""The README.txt of an archive: what it is, how to read it and how to go on from it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from moelaws.workflow.archive import OWN, Sweep, place_of, record_of
from moelaws.workflow.checkout import Checkout

CHANGES = "changes.patch"
COMMIT = "commit.txt"


def readme(sweep: Sweep, checkout: Checkout) -> str:
    """Returns the text, for a reader who knows neither moelaws nor the sweep."""
    tier = sweep.jobs.folder.root
    return f"""\
{_title(sweep)}

This archive holds a finished sweep of moelaws, which trains grids of Mixture-of-Experts language
models, fits scaling laws to their losses and judges what papers claim of them.
{_pages(sweep)}{_stale(sweep)}
WHAT IS IN IT
  config/                 what was to run: the project, its studies, hyperparameters
  envs/                   the versions of all packages (cpu.lock, gpu.lock)
  {COMMIT:<23} the commit of the code; {CHANGES} holds the changes since, if any
  results/runs/           the record of each run: configuration, summary, provenance, history,
                          log and what people noted of it
  results/corpora/        the description and the hashes of the text; the text itself is not here
  results/weights/        the final weights of the runs that a study keeps, if any
  {tier}/tables/    the losses, a row a run (Parquet, with units in the schema)
  {tier}/derived/   what was computed from them, such as optima
  {tier}/fits/      each fit as JSON, with the draws of its bootstrap as Parquet
  {tier}/contests/  laws judged on rows that were kept from them
  {tier}/figures/   PDF and PNG, with the plotted numbers as CSV
  {tier}/claims/    the papers' claims with the verdicts on these runs
  .snakemake/metadata/    what Snakemake knows of the jobs, so that it repeats none
  manifest.json           the size and the SHA-256 of each file

HOW TO READ IT
Figures, CSV, Markdown and HTML open in any program. In Python, pandas.read_parquet reads the
tables. Each run's configuration is results/runs/RUN/config.json, its loss is in summary.json.

HOW TO VERIFY IT
  moelaws archive --check FILE.zip

HOW TO GO ON FROM IT
Clone moelaws, and type these lines in the clone, with the path of this archive for FILE.zip:
{_steps(sweep, checkout)}
{_outcome(sweep)}
{_text(sweep)}"""


def _title(sweep: Sweep) -> str:
    losses = "losses simulated by a law" if sweep.jobs.simulated else f"{len(sweep.runs)} runs"
    studies = " and ".join(sweep.studies)
    return f"The sweep of {studies}, tier {sweep.jobs.project.tier}: {losses}"


def _pages(sweep: Sweep) -> str:
    if sweep.is_whole:
        pages = sweep.jobs.folder
        return f"Open {pages.explore} in a browser first; {pages.report} is the report.\n"
    others = ", ".join(sorted(set(sweep.jobs.studies) - set(sweep.studies)))
    return f"Pages of the whole tier, such as claims.md, also tell of studies not here: {others}.\n"


def _stale(sweep: Sweep) -> str:
    if not sweep.stale:
        return ""
    return (
        f"Other code than that of {COMMIT} trained {sweep.stale} of the runs: the commit of each "
        "run\nstands in its provenance.json.\n"
    )


def _steps(sweep: Sweep, checkout: Checkout) -> str:
    places = {key: str(above) for key, above in sweep.own.items()}
    steps = [f"git checkout {checkout.commit}"] if checkout.commit else []
    if checkout.patch:
        steps += [f"unzip FILE.zip {CHANGES} && git apply {CHANGES}"]
    steps += [
        "unzip -o FILE.zip",
        *(
            f"mkdir -p {quote(above)} && cp -r {OWN}/{key}/. {quote(above)}"
            for key, above in places.items()
            if place_of(key, Path(above)) == Path(OWN, key)
        ),
        "python3 -m venv .venv && .venv/bin/pip install -r envs/cpu.lock -e .",
    ]
    if not all(record_of(path).is_file() for path in sweep.made()):  # times are all it goes by
        steps.append(f".venv/bin/{sweep.command('--cores all --touch')}")
    steps.append(f".venv/bin/{sweep.command('--cores all -n')}")
    lines = "\n".join(f"  {step}" for step in steps)
    if checkout.commit:
        return lines
    return f"{lines}\nThe commit of the code is not known: moelaws was in no checkout of git."


def _outcome(sweep: Sweep) -> str:
    outcome = "The last line says that nothing is to be done: the sweep is finished."
    if sweep.is_whole:
        return outcome
    pages = "Without its targets, Snakemake would write the pages of the whole tier again."
    return f"{outcome}\n{pages}"


def _text(sweep: Sweep) -> str:
    if not sweep.runs:
        return ""
    where = "Put what `corpus` in config/config.yaml names where it was."
    if (corpus := sweep.jobs.project.corpus) in ("stdlib", "environment"):
        records = (record.provenance for record in sweep.records)
        versions = sorted({record["python"] for record in records if "python" in record})
        where = f"`corpus: {corpus}` is the text of Python {' or '.join(versions)}."
    return f"""
The runs are known by their text, so it must be the same. {where}
To train further runs, delete results/corpora first: Snakemake then prepares the text again.
"""

"""``moelaws make`` makes an entry of a study, or all of a kind, as the workflow's rule for it does.

``moelaws check`` imports the code of all entries.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import Answer, json_command, out_option, table_option, table_text, warn
from moelaws.cli.fit import threads_option
from moelaws.cli.project import project_options, tier_folder
from moelaws.files.atomic import write_json, write_text
from moelaws.files.layout import Results
from moelaws.files.seal import made_of
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError, located
from moelaws.spec.project import Project, load_study
from moelaws.spec.readers import Reader
from moelaws.spec.references import resolve
from moelaws.spec.study import Study
from moelaws.spec.words import counted
from moelaws.tables.at_hand import as_made, fitted_table, lacks_first
from moelaws.workflow import code

if TYPE_CHECKING:
    from moelaws.analysis.inputs import Inputs

# Key of a study -> the function that makes one of its entries, and the endings of its files
ENTRIES = {
    "derived": ("analysis.derive:derive", (".parquet",)),
    "figures": ("figures.draw:draw", (".pdf", ".png", ".csv", ".json")),
    "tables": ("figures.draw:draw", (".csv", ".md", ".tex", ".json")),
}


@dataclass(frozen=True)
class Target:
    """What is to be made."""

    study: Study
    kind: str
    name: str  # of the entry; empty for all of the kind
    project: Project
    table: Path | None  # in place of the one that the workflow makes
    out: Path | None

    @cached_property
    def entry(self) -> Any:
        return self.study.entry(self.kind, self.name)

    def path(self, suffix: str) -> Path:
        """Returns the file to write, which by default lies in the current folder."""
        return self.out or Path(f"{self.name or self.study.study}{suffix}")

    def inputs(self, entries: Sequence[Reader]) -> "Inputs":
        """Returns what ``entries`` read together, from where the workflow puts it."""
        from moelaws.analysis.inputs import Inputs, read_runs

        folder, key = tier_folder(self.project), self.study.study
        table = self.table or (folder.table(key) if self.study.has_runs else None)
        fits = {name: folder.fit(key, name) for entry in entries for name in entry.fits}
        inputs = Inputs(
            frame=read_runs(table) if table else None,
            derived_tables={n: folder.derived(key, n) for entry in entries for n in entry.derived},
            data={n: self.study.shipped(n) for e in entries for n in getattr(e, "data", ())},
            table_file=table,
            speed_file=folder.speed(key),
            code=digest(code.of_readers(self.study, self.kind, entries)),
        )
        if not fits:  # what reads none must not depend on the code of fits
            return inputs
        from moelaws.analysis.fitted import FittedInputs

        return FittedInputs(**vars(inputs), fits=fits)


def _entry(target: Target) -> Answer:
    """Makes a derived table, a figure or a paper table."""
    function, suffixes = ENTRIES[target.kind]
    out, inputs = target.path(suffixes[0]), target.inputs([target.entry])
    warnings = resolve("moelaws", function)(target.study, target.name, inputs, out)
    warn(*warnings)
    files = [str(out.with_suffix(suffix)) for suffix in suffixes]
    data = {
        "study": target.study.study,
        target.kind: target.name,
        "files": files,
        "warnings": warnings,
    }
    return data, "\n".join(files)


def _pictures(target: Target) -> Answer:
    """Draws the figures and paper tables that are out of date, and copies the others.

    Each has a log beside it. One that cannot be drawn has no record there, and hides no other.
    """
    from moelaws.figures import draw as drawing

    study, out, lines = target.study, target.path(""), {}
    out.mkdir(parents=True, exist_ok=True)
    for picture in study.pictures:
        old = tier_folder(target.project).figures(study.study) / f"{picture.name}.json"
        new, said = out / old.name, "as it was drawn before"
        try:
            inputs = target.inputs([picture])
            if drawing.is_current(study, picture, inputs, old):
                for path in (old, *drawing.files_at(old, picture)):
                    shutil.copy(path, out)
            else:
                said = "\n".join(["drawn", *drawing.draw(study, picture.name, inputs, new)])
        except Exception as error:  # also of a user's own code
            said = f"cannot be drawn: {error!r}"
        write_text(new.with_suffix(".log"), f"{said}\n")
        lines[picture.name] = said
    return lines, "\n".join(f"{name}: {said}" for name, said in lines.items())


def _fit(target: Target) -> Answer:
    """Fits a law to the study's table, a derived table or the estimates of another fit."""
    from moelaws.cli.fit import answer_of, fit_entry

    folder = tier_folder(target.project)
    table = target.table or fitted_table(target.study, target.entry, folder)
    return answer_of(fit_entry(target.entry, table, target.out))


def _contest(target: Target) -> Answer:
    """Judges the laws of a contest on the rows that each of its splits keeps from them."""
    from moelaws.fitting.contest import contest
    from moelaws.fitting.fit import source_of
    from moelaws.fitting.report import ContestScores
    from moelaws.fitting.rows import read_rows
    from moelaws.workflow.check import check_contest

    study, entry = target.study, target.entry
    check_contest(study, entry)
    table = target.table or tier_folder(target.project).table(study.study)
    frame, declared = read_rows(table)
    with reporting() as progress, located(table):
        splits = contest(entry, frame, units=declared, progress=progress)
    scores = ContestScores(
        study=study.study,
        title=study.title,
        contest=entry.name,
        source=source_of(frame),
        runs=study.imported.called if study.imported else "",
        entry=entry.model_dump(mode="json"),
        seed=0,
        splits=splits,
        made_of=made_of([table], digest(code.of_contest(entry))),
    )
    if target.out:
        return scores, target.out
    from moelaws.claims.page import contests_page

    return scores, contests_page([scores], target.project.tier)


def _claims(target: Target) -> Answer:
    """Judges the claims by rule, from the numbers behind them."""
    from moelaws.claims.judge import judge
    from moelaws.records.registration import files_of, read

    study = target.study
    registrations = [*map(read, files_of(study.study, target.project.tier))]
    entries = code.entries_of(study) if registrations else {}
    rounds = {}
    if ruled := [own.digest for own in registrations if own.rule]:
        from moelaws.grids.rounds import path_of, read_rounds

        known = read_rounds(path_of(study))
        rounds = {digest: known.registered(digest) for digest in ruled}
    verdicts = judge(study, target.inputs(study.claims), registrations, entries, rounds)
    rows = [(c["name"], c["verdict"], c["figure"], c["measured"]) for c in verdicts["claims"]]
    columns = ("claim", "verdict", "figure", "these runs")
    return verdicts, table_text(columns, rows, str(target.out or ""))


def _power(target: Target) -> Answer:
    """Tries the rules of the claims on simulated tables of the study's runs.

    In some the losses are those of the published law, so the effects are there. In the others they
    are those of a law without the effect, fitted to the runs.
    """
    from moelaws.analysis.inputs import read_runs
    from moelaws.claims.base import Verdict
    from moelaws.claims.power import tried

    study, tier, tables = target.study, target.project.tier, target.project.trials or 10
    path = target.table or tier_folder(target.project).table(study.study)
    origin = made_of([path], digest(code.of_entry(study, "power")))
    with reporting(lines=False) as show:
        counts = tried(
            study, tier, read_runs(path), tables, origin, lambda i, n: show("tables", i, n)
        )
    if not counts["claims"]:
        raise UserError(f"{study.study}: no law gives what the rules of its claims read")
    rows = [
        (name, law, *own.values())
        for name, laws in counts["claims"].items()
        for law, own in laws.items()
    ]
    columns = ("claim", "losses of the law", *Verdict)
    title = f"{tables} tables for each law, noise {counts['noise']:.2g}"
    return counts, table_text(columns, rows, title)


def _runs(target: Target) -> Answer:
    """Collects the summaries of a study's runs in one table, or simulates their losses.

    Of a study of imported runs it checks the table that it ships, or those of the register that are
    here, and takes it.
    """
    study, project, path = target.study, target.project, target.path(".parquet")
    origin = digest(code.of_entry(study, "runs", simulated=project.source == "simulated"))
    staged = {} if project.stages == "all" else {"stages": ", ".join(project.stages)}
    if study.imported:
        from moelaws.tables.at_hand import imported_files
        from moelaws.tables.imported import take

        files = [path for pair in imported_files(study).items() for path in pair if path.is_file()]
        counts = Counter(imported=take(study, path, made_of(files, origin)))
    elif project.source == "simulated":
        from moelaws.grids.sweep import expand_study
        from moelaws.tables.simulate import simulated, simulation_entry, write

        simulation, about = simulated(expand_study(study, project), simulation_entry(study))
        write(simulation, path, about | staged, origin)
        counts = Counter(simulated=len(simulation.frame))
    else:
        from moelaws.grids.sweep import expand_study
        from moelaws.tables.aggregate import aggregate, rates_at_the_edge
        from moelaws.tables.aggregate import origin as of_runs
        from moelaws.tables.parquet import write_table
        from moelaws.tables.schema import TRAINED_COLUMNS

        runs, results = expand_study(study, project).runs, Results()
        frame = aggregate(study.study, project.tier, runs, results, warn)
        notes = {"study": study.study, "tier": project.tier, **staged}
        write_table(frame, TRAINED_COLUMNS, path, notes, {"code": origin, **of_runs(runs, results)})
        warn(*rates_at_the_edge(frame))
        counts = Counter(frame["status"])
    states = ", ".join(f"{n} {status}" for status, n in counts.items())
    data = {"table": path, "rows": counts.total(), "status": counts}
    return data, f"{path}: {counted(counts.total(), 'run')} ({states})"


JUDGED = ("contests", "claims", "power")  # whose answer is what is written
MAKERS: dict[str, Callable[[Target], Answer]] = {
    "runs": _runs,
    **dict.fromkeys(ENTRIES, _entry),
    "pictures": _pictures,
    "fits": _fit,
    "contests": _contest,
    "claims": _claims,
    "power": _power,
}


@json_command
@click.argument("kind", type=click.Choice(MAKERS), metavar="KIND")
@click.argument("study")
@click.argument("name", default="")
@project_options
@table_option
@threads_option()
@out_option("The file to write; without it claims, fits, contests and power are only printed.")
def command(
    kind: str,
    study: str,
    name: str,
    project: Project,
    table: Path | None,
    out: Path | None,
) -> Answer:
    """Make what STUDY declares, as the workflow does, from what the workflow made before.

    KIND is a key of the study's file. Of derived, figures, tables, fits and contests it takes the
    NAME of an entry, and of claims it makes all. Three more kinds are the table of its `runs`, all
    `pictures` that are out of date (figures and paper tables, into the folder --out), and `power`:
    how often the rules of its claims are right on simulated tables.

    \b
    moelaws make figures sparsity F7
    moelaws make claims ../ours/study.yaml
    """
    known = load_study(study)
    if missing := lacks_first(known):
        raise UserError(missing)
    data, text = MAKERS[kind](Target(as_made(known, project), kind, name, project, table, out))
    if out and kind in JUDGED:
        write_json(out, data)
    return data, text


@click.command(name="check")
@click.argument("study")
def check(study: str) -> None:
    """Import the code of STUDY's entries, so that its mistakes show before anything is trained."""
    from moelaws.analysis.derive import derived_table
    from moelaws.workflow.check import check_study

    known = load_study(study)
    for entry in known.readers:
        for reference in entry.references:
            with located(known.file, f"{entry.name}: code"):
                resolve(known.home, reference)
    for claim in known.claims:
        if claim.measure and claim.measure.source:
            made = derived_table(known, known.derived_table(claim.measure.source))
            with located(known.file, claim.name):
                claim.measure.refuse_unknown((*made.names, "source"))
    check_study(known)

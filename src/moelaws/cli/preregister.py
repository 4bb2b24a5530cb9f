"""``moelaws preregister``: what a sweep will be judged by, fixed before it trains."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import (
    BEST,
    INPUT,
    Answer,
    Paths,
    json_command,
    option,
    out_option,
    table_text,
)
from moelaws.cli.project import project_options, tier_folder
from moelaws.files import seal
from moelaws.files.atomic import finite, read_json, write_json
from moelaws.files.layout import Results
from moelaws.records.ancestry import added, descends, is_shallow
from moelaws.records.provenance import collect
from moelaws.records.registration import FOLDER, Predicted, Registration, files_of, read
from moelaws.records.runs import read_record
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Study
from moelaws.spec.words import counted
from moelaws.tables.at_hand import as_made
from moelaws.workflow.code import entries_of

if TYPE_CHECKING:
    from moelaws.grids.sweep import Sweep


@json_command
@click.argument("study_name", metavar="STUDY", default="")
@project_options
@option("--fit fits", "Fix what this fit predicts of each run, too.", INPUT, multiple=True)
@option("--at budgets", "Fix what the fits advise for this budget.", BEST, multiple=True)
@option("--amends", "An older registration of the sweep, which this one replaces.", INPUT)
@option("--why", "Why it is amended.", default="")
@option("--check", "Check the registrations of STUDY, or all, and write none.", is_flag=True)
@out_option("With --check: draw predicted losses beside those that came, as PDF, PNG, CSV.", ".pdf")
def command(
    study_name: str,
    project: Project,
    fits: Paths,
    budgets: tuple[float, ...],
    amends: Path | None,
    why: str,
    check: bool,
    out: Path | None,
) -> Answer:
    """Fix, before it trains, what STUDY's sweep at this tier will be judged by.

    One sealed file in config/preregistered holds the runs, the claims' rules with all that they
    read, the digests of the code, and what the fits given predict. Commit it, then train. Verdicts
    say from then on whether their claim was preregistered, and what was done otherwise.

    --check is for others: it tells of each registration whether a commit has it, whether one
    changed it since, and which runs were trained by a commit that does not descend from the first.
    It ends with 1 where something speaks against one.
    """
    if check and not out:
        return _checked(study_name)
    if not study_name:
        raise UserError("name the study to preregister, or give --check")
    if out and not check:
        raise UserError("--out is for a figure of predictions; it goes with --check")
    if out:
        return _drawn(load_study(study_name).study, project, out)
    if bool(amends) != bool(why.strip()):
        raise UserError("--amends and --why go together: say why the registration is amended")
    study = as_made(load_study(study_name), project)
    older = read(amends) if amends else None
    if older and (older.study, older.tier) != (study.study, project.tier):
        raise UserError(f"--amends: {amends} is of {older.study} at the tier {older.tier}")
    if budgets and not fits:
        raise UserError("--at asks fits for their advice, and there is no --fit")
    return write(
        study,
        project,
        fits,
        advice=_advised(fits, budgets, project.tier),
        amends=older.digest if older else "",
        why=why.strip(),
    )


def write(
    study: Study, project: Project, fits: Paths = (), pools: Iterable[str] = (), **more: Any
) -> Answer:
    """Writes a registration of the study's sweep, with the runs of ``pools``; returns the answer.

    ``more`` are further values of the registration.
    """
    own = _registration(study, project, fits, pools).model_copy(update=more)
    FOLDER.mkdir(parents=True, exist_ok=True)
    blank = FOLDER / f".{os.getpid()}.json"
    write_json(blank, finite(own.model_dump(mode="json", exclude={"digest"})))
    name = f"{study.study}.{project.tier}.{seal.digest(blank)[:8]}.json"
    file = blank.rename(FOLDER / name)
    seen = f"; {counted(len(own.seen), 'run')} had ended before" if own.seen else ""
    what = f"{counted(len(own.runs), 'run')}, {counted(len(study.claims), 'claim')}{seen}"
    return {"file": file, **read_json(file)}, f"{file}: {what}\nCommit it before the sweep trains."


def _registration(
    study: Study, project: Project, fits: Paths, pools: Iterable[str]
) -> Registration:
    from moelaws.grids.sweep import expand_study

    origin, folder = collect(), tier_folder(project)
    if origin["commit"] is None or origin["dirty"]:
        what = "has changes that no commit has" if origin["dirty"] else "has no commit"
        raise UserError(f"the code {what}; a registration names a commit that all can look up")
    sweep = expand_study(study, project, pools=pools)
    if not sweep.runs:
        raise UserError(f"{study.file} has no runs at the tier {project.tier}, so nothing to fix")
    power = folder.power(study.study)
    return Registration(
        study=study.study,
        tier=project.tier,
        title=study.title,
        stages=() if project.stages == "all" else project.stages,
        time=origin["started"],
        commit=origin["commit"],
        moelaws=origin["moelaws"],
        python=origin["python"],
        packages=origin["packages"],
        seen=tuple(r.run_id for r in sweep.runs if Results().summary(r.run_id).exists()),
        table=folder.table(study.study).exists(),
        runs={run.run_id: (run.C, run.sweeps) for run in sweep.runs},
        entries=entries_of(study),
        predictions=tuple(_predicted(path, sweep) for path in fits),
        power=read_json(power) if power.is_file() else None,
    )


def _predicted(path: Path, sweep: "Sweep") -> Predicted:
    """Returns what a fit predicts of each run of the sweep, with the interval of one run."""
    import numpy as np

    from moelaws import laws
    from moelaws.fitting.prediction import predict
    from moelaws.fitting.report import group_draws, read_fit
    from moelaws.fitting.variables import read_variables
    from moelaws.spec.fit import Fit
    from moelaws.tables.simulate import design

    report, runs = read_fit(path), design(sweep).assign(L=1.0)  # no run has a loss yet
    law = laws.fittable(report.law)
    if report.split_by:
        raise UserError(f"--fit: {path} is split by {report.split_by}; give a fit of one law")
    (fitted,) = report.parts
    columns = read_variables(law, runs, parse(Fit, report.spec, path)).values
    known = predict(law, fitted, group_draws(path, report, fitted), columns, report.level)
    numbers = np.transpose([known.value, known.new_low, known.new_high]).tolist()
    return Predicted(
        fit=str(path),
        law=law.ref,
        digest=seal.digest(path),
        level=report.level,
        losses=dict(zip(runs["run_id"], finite(numbers), strict=True)),
    )


def _advised(fits: Paths, budgets: Sequence[float], tier: str) -> dict[str, dict[str, Any]]:
    """Returns what the fits advise for each budget: the best model, its tokens and loss."""
    if not budgets:
        return {}
    from moelaws.accounting.cost import CPU
    from moelaws.analysis.advice import Constraints, advise, page
    from moelaws.analysis.advice.sources import fitted_laws
    from moelaws.spec.advice import load_advice

    config, advised = load_advice(), dict[str, dict[str, Any]]()
    own, unusable = fitted_laws(fits, config, lambda *_: None)
    for path, why in unusable.items():
        raise UserError(f"--at: {path}: {why}")
    for C in budgets:
        answer = advise(
            own,
            Constraints(C),
            config.shape_of(tier),
            advisers=config.advisers,
            setters=config.setters,
        )
        data = finite(page.as_json(answer, [], CPU))
        for judge in data["judges"]:
            judge["coefficients"] = os.path.relpath(judge["coefficients"])
        advised[f"C={C:g}"] = data
    return advised


def _drawn(study: str, project: Project, out: Path) -> Answer:
    """Draws the losses of the tier's runs beside those that registrations predicted."""
    from moelaws.analysis.inputs import completed, read_runs
    from moelaws.claims.registration import applying, compared
    from moelaws.figures.draw import save
    from moelaws.figures.predicted import draw

    runs = completed(read_runs(tier_folder(project).table(study)))
    holding = applying([*map(read, files_of(study, project.tier))], {*runs["run_id"]})
    pairs = [pair for own in holding for pair in compared(own, runs)]
    if not pairs:
        raise UserError(f"no registration predicted the losses of {study}'s runs; --fit does")
    save(draw(pairs), out)
    return {"figure": out, "registrations": [own.digest for own in holding]}, str(out)


def _checked(study: str) -> Answer:
    """Tells of each registration what git's history says of it."""
    if not (files := files_of(study)):
        raise UserError(f"{FOLDER} has no registration{study and f' of {study}'}")
    against_each = {str(path): [*_against(path)] for path in files}
    rows = [(name, "; ".join(against) or "nothing") for name, against in against_each.items()]
    if any(against_each.values()):
        click.get_current_context().call_on_close(lambda: click.get_current_context().exit(1))
    return against_each, table_text(("registration", "what speaks against it"), rows)


def _against(path: Path) -> Iterator[str]:
    own, first, results = read(path), added(path), Results()
    if first is None:
        yield "no commit has it, so that nothing says when it was written"
        return
    if first.changes:
        yield f"{counted(first.changes, 'commit')} changed it since it was added"
    if is_shallow(path.parent):
        yield "this clone is shallow and cannot tell: `git fetch --unshallow` first"
        return
    records = {r: read_record(results, r).provenance for r in own.runs if results.run(r).is_dir()}
    before, lost = list[str](), list[str]()
    for run, one in records.items():
        commits = {p.get("commit") for p in [one, *one.get("resumed_from", [])] if one}
        orders = [commit and descends(path.parent, commit, first.commit) for commit in commits]
        before += [run] * (False in orders)
        lost += [run] * (None in orders)
    for runs, words in ((before, "by commits before it"), (lost, "by commits that are not here")):
        if runs:
            yield f"{counted(len(runs), 'run')} trained {words}: {', '.join(runs[:4])}"

"""``moelaws claims``, ``contests``, ``outlook`` and ``explore`` write one page each."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import INPUT, Answer, Paths, json_command, option, out_option, warn
from moelaws.cli.project import project_options, snakemake_call, tier_folder
from moelaws.files.atomic import finite, write_json, write_page
from moelaws.files.layout import Results
from moelaws.files.seal import digests, made_of
from moelaws.records.code import digest
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.words import counted
from moelaws.tables.at_hand import as_made

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from moelaws.claims.base import JudgedStudy
    from moelaws.fitting.report import FitReport


_out_option = out_option("The Markdown file to write; without it the page is printed.", ".md")


@json_command
@click.argument("verdicts", nargs=-1, type=INPUT)
@option(
    "--power powers",
    "Verdicts on simulated tables (moelaws make power), to print beside these.",
    INPUT,
    multiple=True,
)
@option("--artifact", "Write how to make the verdicts again, and what to expect.", is_flag=True)
@project_options
@_out_option
def claims(
    verdicts: Paths, powers: Paths, artifact: bool, project: Project, out: Path | None
) -> Answer:
    """Write what the studies claim beside what these runs show, as one page.

    VERDICTS are files that `moelaws make claims` wrote; by default those of the chosen studies,
    with what `moelaws make power` wrote for them. With --artifact it is the page for whoever
    evaluates a paper's artifact: what to call, how long it takes, which values to expect.
    """
    from moelaws.claims.base import JudgedStudy, Tried
    from moelaws.claims.page import page, read_judged

    folder = tier_folder(project)
    if not verdicts:
        names = [s.study for s in chosen_studies(project) if as_made(s, project).claims]
        if not names:
            raise UserError("no chosen study has a claim; the key `claims` of its file states them")
        verdicts = tuple(folder.verdicts(name) for name in names)
        powers = powers or tuple(p for p in map(folder.power, names) if p.is_file())
    judged = [read_judged(JudgedStudy, path) for path in verdicts]
    if artifact:
        return _written(_artifact(verdicts, judged, project), out, {"studies": judged})
    tried = {(power := read_judged(Tried, path))["study"]: power for path in powers}
    return _written(page(judged, project.tier, tried), out, {"studies": judged})


def _artifact(verdicts: Paths, judged: "Sequence[JudgedStudy]", project: Project) -> str:
    """Returns the page by which others make the verdicts again."""
    import pandas as pd

    from moelaws.analysis.inputs import read_runs
    from moelaws.claims import artifact
    from moelaws.records.runs import read_record

    results, folder = Results(), tier_folder(project)
    studies, tables = {}, []
    for path, study in zip(verdicts, judged, strict=True):
        one = project.model_copy(update={"studies": (study["study"],)})
        studies[f"{snakemake_call(one)} -- {path}"] = study
        if study["source"] == "trained":
            tables.append(read_runs(folder.table(study["study"])))
    if not tables:
        raise UserError("these verdicts are on no runs that were trained here")
    runs = pd.concat(tables)
    ids = [*runs["run_id"].unique()]
    disk = sum(f.stat().st_size for run in ids for f in results.run(run).rglob("*") if f.is_file())
    records = [read_record(results, run).provenance for run in ids]
    return artifact.page(studies, runs, [one for one in records if one], disk, project.tier)


@json_command
@click.argument("files", nargs=-1, type=INPUT)
@project_options
@_out_option
def contests(files: Paths, project: Project, out: Path | None) -> Answer:
    """Write which law to use for what, as one page.

    FILES are what `moelaws make contests` wrote; by default those of the chosen studies.
    """
    from moelaws.claims.page import contests_page, read_judged
    from moelaws.fitting.report import ContestScores

    studies = [as_made(study, project) for study in chosen_studies(project)]
    files = files or tuple(
        tier_folder(project).contest(study.study, contest.name)
        for study in studies
        for contest in study.contests
    )
    judged = [read_judged(ContestScores, path) for path in files]
    return _written(contests_page(judged, project.tier), out, {"contests": judged})


def _written(text: str, out: Path | None, judged: dict[str, Any]) -> Answer:
    if out:
        write_page(out, text)
    return {"page": out, **judged}, out or text


TIMES = (10.0, 100.0)


@json_command
@click.argument("fits", nargs=-1, type=INPUT)
@project_options
@option(
    "--table tables",
    "A table of the runs that were fitted; its largest budget is what the answer goes beyond.",
    INPUT,
    multiple=True,
    required=True,
)
@out_option(
    "The Markdown file to write, with a picture and the answers as JSON beside it; without it the "
    "page is printed."
)
def outlook(fits: Paths, project: Project, tables: Paths, out: Path | None) -> Answer:
    """Write what FITS and the published laws advise at 10 and 100 times the largest budget.

    Plans train on the text of the runs, at most four times over.

    FITS are reports of `moelaws fit`; those of laws that are no candidates of config/advice.yaml,
    or of simulated losses, take no part and are named. `moelaws advise` answers for any other
    budget.
    """
    import pandas as pd

    from moelaws.accounting.cost import CPU
    from moelaws.analysis.advice import Constraints, advise, page
    from moelaws.analysis.advice.blocks import markdown
    from moelaws.analysis.advice.short import EPOCHS
    from moelaws.analysis.advice.sources import fitted_laws, published_laws
    from moelaws.analysis.inputs import completed, read_runs
    from moelaws.figures.advice import write_page
    from moelaws.workflow.code import of_outlook

    config = load_advice()
    by_study = {}
    for table in tables:
        by_study[table.stem] = frame = completed(read_runs(table))
        if missing := {"C_6N", "D", "kind", "k"} - set(frame):
            raise UserError(f"{table}: the column {min(missing)} is missing")
    runs = pd.concat(by_study.values())
    own, unusable = fitted_laws(
        fits, config, lambda path, report: _active(by_study.get(path.parent.name, runs), report)
    )
    # Infinite if the tables do not say how much text there was, like those of other tools' runs.
    text = float((runs["D"] / runs["epochs"]).max()) if "epochs" in runs else math.nan
    tokens = math.inf if math.isnan(text) else EPOCHS * text
    titled, answers = {}, {}
    for factor in TIMES:
        limits = Constraints(factor * float(runs["C_6N"].max()), max_tokens=tokens)
        answer = advise(
            [*published_laws(config), *own],
            limits,
            config.shape_of(project.tier),
            advisers=config.advisers,
            setters=config.setters,
        )
        titled[f"{factor:g} times the largest budget: {limits.compute:.3g} FLOPs"] = answer
        answers[f"{factor:g}"] = page.as_json(answer, [], CPU)
    advice = [*page.outlook(titled, project.tier, {p.stem: why for p, why in unusable.items()})]
    data = finite(answers)
    if out is None:
        return data, markdown(advice)
    origin = made_of([ADVICE, *tables, *fits], digest(of_outlook(config)))
    write_page(out, advice, titled)
    files = digests([out, out.with_suffix(".png")])
    write_json(out.with_suffix(".json"), {"made_of": origin, "files": files, "answers": data})
    return {"page": out}, out


def _active(runs: "pd.DataFrame", report: "FitReport") -> int | None:
    """Returns the active experts of the mixtures behind a fit, or None if they are not all alike.

    ``runs`` are those of the fit's study.
    """
    from moelaws.analysis.inputs import row_mask
    from moelaws.tables.sweeps import in_sweep

    if sweep := report.spec.get("sweep"):
        runs = runs[in_sweep(runs, sweep)]
    runs = runs[row_mask(runs, report.spec.get("rows", ""))]
    counts = runs.loc[runs["kind"] == "moe", "k"].unique()
    return int(counts[0]) if len(counts) == 1 else None


@json_command
@project_options
@out_option("The page to write (.html); explore.html in this folder by default.", ".html")
def explore(project: Project, out: Path | None) -> Answer:
    """Write a page with all runs, curves, laws, figures and verdicts that were made of a tier.

    The page is one file that opens in a browser without a network. It shows what is there, also
    while runs are under way: call the command again to see more.
    """
    from moelaws.explore.material import Material
    from moelaws.explore.page import gather, render
    from moelaws.workflow.jobs import Jobs

    jobs = Jobs.of(project).with_others()
    studies, declared = tuple(jobs.shown_studies.values()), frozenset(jobs.explored())
    out = out or Path(jobs.folder.explore.name)
    material = Material(project, studies, jobs.sweeps, declared, jobs.simulated, jobs.results, out)
    data = gather(material)
    if not (data["runs"]["count"] or data["studies"]):
        raise UserError(
            f"{material.folder.root} has no table, figure or verdict, and {material.results.runs} "
            f"no run of the tier {project.tier}. Run `{snakemake_call(project)}` first, or name "
            "another tier with --tier"
        )
    write_page(out, render(data))
    size, runs, notes = out.stat().st_size / 1e6, data["runs"]["count"], data["notes"]
    warn(*notes)
    numbers = {name: len(data[name]) for name in ("laws", "isoflop", "studies")}
    about = {"page": out, "megabytes": size, "runs": runs, **numbers, "notes": notes}
    return about, f"{out}: {counted(runs, 'run')}, {size:.1f} MB; open it in a browser"

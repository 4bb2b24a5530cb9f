"""``moelaws compare``: laws side by side on the same rows and the same hold-out.

``moelaws contest`` judges laws as a study says; ``contests`` says on a page which one to use.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import (
    JsonCommand,
    format_cell,
    print_answer,
    print_json,
    print_table,
    table_text,
)
from moelaws.cli.common import (
    FILE,
    Paths,
    law_study_option,
    option,
    out_option,
    study_option,
    table_option,
)
from moelaws.cli.fit import fit_options, from_options, read, read_all, seed_option, threads_option
from moelaws.cli.project import source_options, tier_folder
from moelaws.cli.study_files import study_with
from moelaws.files.atomic import write_json
from moelaws.records.progress import reporting
from moelaws.spec.errors import located
from moelaws.spec.project import Project, chosen_studies
from moelaws.tables.at_hand import at_hand


@click.command("compare", cls=JsonCommand)
@click.argument("table", type=FILE)
@option("--laws refs", "The laws, each as LAW or LAW:VARIANT.", required=True, metavar="A,B,...")
@fit_options
@option(
    "--at point",
    "Predict the response there too, by each law and by their average.",
    default="",
    metavar="'N=1e10 D=2e11'",
)
@seed_option
@threads_option
@out_option("FILE.json for the comparison.", ".json")
@law_study_option
def command(
    table: Path, refs: str, seed: int, out: Path | None, point: str, as_json: bool, **options: Any
) -> None:
    """Fit several laws to the same rows of TABLE and set them side by side.

    Forms of one law can be compared too: --laws allocation.loss,allocation.loss:abslog+log1p. The
    table is sorted by the error on held-out rows (root mean square, in the response's unit), or by
    AICc if no row is held out, which rests on ln of the response; a fit that did not converge, or
    of too few rows, has none and comes last. Beside each rank stand the best and the worst one
    within the interval, and how often the law is first. A law of whose variables
    one is constant in the table is fitted in a reduced form. A law that cannot be fitted to the
    table is named with the reason, and the others are compared.

    Beyond the fitted compute, intervals are calibrated on fits to the cheaper rows. `inside` says
    how many of the held-out rows they hold. Laws with such a calibration are also averaged, by
    weights of their errors there.
    """
    from moelaws import laws
    from moelaws.cli.eval import given_numbers
    from moelaws.cli.laws import join_own_laws
    from moelaws.fitting.compare import compare

    at = given_numbers(point.replace(",", " ").split())
    given = {key: value for key, value in options.items() if value not in (None, ())}
    spec = from_options({"name": "comparison", "law": refs} | given, "compare")
    names = [ref.strip() for ref in refs.split(",") if ref.strip()]
    join_own_laws(names)
    candidates = [laws.fittable(name) for name in names]
    frame, declared, entry, _ = read_all(table, spec)
    with reporting() as progress, located(table):
        entries, refused, average = compare(
            candidates, frame, entry, seed=seed, units=declared, progress=progress, at=at
        )
    data = {"holdout": spec.holdout, "level": spec.level, "laws": entries, "refused": refused}
    data |= {"average": average, "at": at}
    if out is not None:
        write_json(out, data)
    texts = [_table(entries, spec.level, spec.holdout), *_of_average(average)]
    if at:
        texts.append(_predictions(entries, average, spec.level, point))
    print_answer(as_json, data, "\n".join(texts))
    for name, reason in refused.items():
        click.echo(f"refused: {name}: {reason}", err=True)
    for law in entries:
        for warning in law["warnings"]:
            click.echo(f"warning: {law['law']}: {warning}", err=True)


def _table(entries: list[dict[str, Any]], level: float, holdout: str) -> str:
    """Returns errors and criteria, or with held-out rows the errors there and the ranks by them."""
    title = f"{entries[0]['n']} rows fitted"
    laws = [law["law"] + " (did not converge)" * (not law["converged"]) for law in entries]
    if not holdout:
        columns = ("law", "parameters", "rmse", "r2", "AICc - least", "BIC - least")
        keys = ("n_params", "rmse", "r2", "aicc_excess", "bic_excess")
        rows = [[name, *map(law.get, keys)] for name, law in zip(laws, entries, strict=True)]
        return table_text(columns, rows, title)
    each = [
        (
            name,
            law["rmse"],
            *(_within(law["holdout"], key) for key in ("rmse", "rmse_excess", "rank")),
            *map(law["holdout"].get, ("first", "inside")),
        )
        for name, law in zip(laws, entries, strict=True)
    ]
    title += f"; {entries[0]['holdout']['n']} rows held out ({holdout}); intervals {level:.0%}"
    return table_text(
        ("law", "rmse", "held-out rmse", "excess", "rank", "first", "inside"), each, title
    )


def _within(held: dict[str, Any], name: str) -> str:
    """Returns a number with its interval, such as ``0.031 (0.027 to 0.036)``."""
    value, ends = held.get(name), held.get(f"{name}_interval")
    between = f" ({' to '.join(map(format_cell, ends))})" if ends else ""
    return format_cell(value) + between


def _of_average(average: dict[str, Any] | None) -> list[str]:
    if average is None:
        return []
    weights = ", ".join(f"{law} {weight:.2f}" for law, weight in average["weights"].items())
    held = average["holdout"]
    error = f"; held-out rmse {held['rmse']:.4g}" if held else ""
    if held and held["inside"] is not None:
        error += f", {100 * held['inside']:.0f} % inside its interval"
    return [f"average by roll-out errors ({weights}){error}"]


def _predictions(
    entries: list[dict[str, Any]], average: dict[str, Any] | None, level: float, point: str
) -> str:
    every = [(law["law"], law["at"]) for law in entries]
    every += [("average", average["at"])] if average else []
    keys = ("value", "low", "high", "new_low", "new_high")
    percent = f"{100 * level:g} %"
    return table_text(
        ("law", "value", f"mean low ({percent})", "high", "new run low", "high"),
        [(name, *(at[key] for key in keys)) for name, at in every],
        title=f"at {point}",
    )


if TYPE_CHECKING:
    from moelaws.fitting.report import SplitScores


@click.command("contest", cls=JsonCommand)
@click.argument("name")
@source_options
@study_option
@table_option
@seed_option
@threads_option
@out_option("A JSON file for the scores; without it they are only printed.", ".json")
def contest(
    name: str,
    project: Project,
    study_name: str | None,
    table: Path | None,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Judge the laws of the contest NAME on the rows that each of its splits keeps from them.

    `moelaws contests` sets the contests of all studies as one page; `moelaws compare` does the same
    for any table and hold-out.
    """
    study = study_with("contests", name, study_name)
    entry = study.entry("contests", name)

    from moelaws.files.atomic import write_json
    from moelaws.files.seal import made_of
    from moelaws.fitting.contest import contest
    from moelaws.fitting.fit import source_of
    from moelaws.fitting.report import ContestScores
    from moelaws.records.code import digest
    from moelaws.workflow.check import check_contest
    from moelaws.workflow.code import of_contest

    check_contest(study, entry)
    table = table or tier_folder(project).table(study.study)
    frame, declared = read(table)
    with reporting() as progress, located(table):
        splits = contest(entry, frame, seed=seed, units=declared, progress=progress)
    judged = ContestScores(
        study=study.study,
        title=study.title,
        contest=name,
        source=source_of(frame),
        runs=study.imported.called if study.imported else "",
        entry=entry.model_dump(mode="json"),
        seed=seed,
        splits=splits,
        made_of=made_of([table], digest(of_contest(entry))),
    )
    if out:
        write_json(out, judged)
    if as_json:
        print_json(judged)
        return
    for split in splits:
        _print(split, entry.level)
    if out:
        click.echo(str(out))


def _print(split: "SplitScores", level: float) -> None:
    if split["laws"]:
        rows = [
            [
                *(law["law"], law["parameters"], law["rmse"]),
                *law.get("rmse_interval", [None, None]),
                *(law["r2"], law["rank"], law.get("first")),
            ]
            for law in split["laws"]
        ]
        columns = ("law", "parameters", "rmse", f"low ({level:.0%})", "high", "r2", "rank")
        print_table((*columns, "first"), rows, title=f"{split['name']}: to predict {split['use']}")
    for law, reason in split["refused"].items():
        click.echo(f"refused at the split {split['name']}: {law}: {reason}", err=True)


@click.command("contests", cls=JsonCommand)
@click.argument("files", nargs=-1, type=FILE)
@source_options
@out_option("The Markdown file to write; without it the page is printed.", ".md")
def contests(files: Paths, project: Project, out: Path | None, as_json: bool) -> None:
    """Write which law to use for what, as one page.

    FILES are what `moelaws contest` wrote; by default those of the chosen studies.
    """
    from moelaws.claims.page import contests_page, read_judged
    from moelaws.files.atomic import write_page
    from moelaws.fitting.report import ContestScores

    folder = tier_folder(project)
    files = files or tuple(
        folder.contest(study.study, contest.name)
        for study in chosen_studies(project)
        for contest in at_hand(study, project.tier).contests
    )
    judged = [read_judged(ContestScores, path) for path in files]
    text = contests_page(judged, project.tier)
    if out:
        write_page(out, text)
    print_answer(as_json, {"page": str(out) if out else None, "contests": judged}, out or text)

"""``moelaws runs``: what was trained, what failed, what other code made."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.records.runs import STATUSES

# Heading -> key of the record.
COLUMNS = {
    "ffn": "config.model.ffn.kind",
    "d_model": "config.model.d_model",
    "E": "config.model.ffn.n_experts",
    "steps": "config.steps",
    "lr": "config.optimizer.lr",
    "seed": "config.seed",
    "L": "summary.loss",
    "L_se": "summary.loss_se",
    "seconds": "summary.wall_seconds",
    "started": "provenance.started",
}


@click.command(name="runs")
@click.argument("chosen", metavar="[RUN]...", nargs=-1)
@click.option("--status", type=click.Choice(STATUSES), help="Only runs in this state.")
@click.option("--stale", is_flag=True, help="Only runs that other training code made.")
@click.option(
    "--retry",
    "again",
    is_flag=True,
    help="Ask again for the runs that failed or are damaged, for all stale ones with --stale, "
    "and for each RUN that is named.",
)
@json_option
def command(
    chosen: tuple[str, ...], status: str | None, stale: bool, again: bool, as_json: bool
) -> None:
    """List the runs on record, or each RUN (an id or its beginning): status, loss, times, code."""
    from moelaws.records.code import training_code
    from moelaws.records.layout import Results
    from moelaws.records.runs import UNSUCCESSFUL, all_records, find_record, flatten
    from moelaws.tables.retry import retry

    results, code = Results(), training_code()
    records = [
        r
        for r in ([find_record(results, run) for run in chosen] or all_records(results))
        if (status is None or r.status == status) and (not stale or r.is_stale(code))
    ]
    if again:
        of_all = bool(chosen) or stale
        retried = [r for r in records if r.status in UNSUCCESSFUL or (of_all and r.summary)]
        retry(results, retried)
        click.echo(f"{len(retried)} runs will be trained at the next call of snakemake", err=True)
    if as_json:
        print_json([r.as_dict() for r in records])
        return
    rows = []
    for r in records:
        known = {"config.seed": 0 if r.config else None, **flatten(r.as_dict())}
        rows.append(
            [
                r.run_id,
                r.status + (" (stale)" if r.is_stale(code) else ""),
                *(known.get(key) for key in COLUMNS.values()),
                (r.provenance.get("commit") or "")[:8] + ("+" if r.provenance.get("dirty") else ""),
            ]
        )
    print_table(["run_id", "status", *COLUMNS, "commit"], rows)
    click.echo(f"{len(rows)} runs")

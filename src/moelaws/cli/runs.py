"""``moelaws runs``: what was trained, what failed, what other code made."""

from __future__ import annotations

import click

from moelaws.cli.output import json_option, print_json, print_table


@click.command(name="runs")
@click.option("--status", help="Only runs in this state, such as diverged or running.")
@click.option("--stale", is_flag=True, help="Only runs that other training code made.")
@click.option("--retry", "again", is_flag=True, help="Ask for the runs that failed again.")
@json_option
def command(status: str | None, stale: bool, again: bool, as_json: bool) -> None:
    """The runs on record: status, loss, times; which ones other code made."""
    from moelaws.records.code import training_code
    from moelaws.records.layout import Results
    from moelaws.records.runs import UNSUCCESSFUL, all_records, retry
    from moelaws.spec.run import RunConfig

    results, code = Results(), training_code()
    records = [
        r
        for r in all_records(results)
        if (status is None or r.status == status) and (not stale or r.is_stale(code))
    ]
    if again:
        failed = [r for r in records if r.status in UNSUCCESSFUL]
        for record in failed:
            retry(results, record)
        click.echo(f"{len(failed)} runs will be trained at the next call of snakemake", err=True)
    if as_json:
        print_json([r.as_dict() for r in records])
        return
    rows = []
    for r in records:
        config = RunConfig.model_validate(r.config) if r.config else None
        rows.append(
            [
                r.run_id,
                r.status + (" (stale)" if r.is_stale(code) else ""),
                config and config.model.d_model,
                config and config.model.ffn.kind,
                getattr(config and config.model.ffn, "n_experts", None),
                config and config.tokens,
                config and config.optimizer.lr,
                config and config.seed,
                r.summary.get("loss"),
                r.summary.get("loss_se"),
                r.summary.get("wall_seconds"),
                (r.provenance.get("commit") or "")[:8] + ("+" if r.provenance.get("dirty") else ""),
                r.provenance.get("started", ""),
            ]
        )
    print_table(
        ["run_id", "status", "d_model", "ffn", "E", "D", "lr", "seed", "L", "L_se", "seconds",
         "commit", "started"],
        rows,
    )  # fmt: skip
    click.echo(f"{len(rows)} runs")

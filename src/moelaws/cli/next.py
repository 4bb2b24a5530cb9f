"""``moelaws next``: which runs to train next."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from moelaws.cli.common import (
    BEST,
    COUNT,
    WHOLE,
    Answer,
    Value,
    between,
    json_command,
    option,
    pairs_option,
)
from moelaws.cli.project import override_options
from moelaws.spec.errors import UserError
from moelaws.spec.numbers import amount
from moelaws.spec.project import load_project

_BUDGET = Value("FLOPS|PERCENT", lambda text: (amount(text), text.strip().endswith("%")),
                lambda pair: 0 < pair[0] < 1e100 and not (pair[1] and pair[0] > 1),
                "no budget, such as 1e19, or 10% of the cost of all runs")  # fmt: skip


@json_command
@click.argument("source", metavar="STUDY|TABLE")
@override_options
@option("--target", "The budget whose best model is asked for.", BEST)
@option("--target-rows", "Rows of the pool whose loss is asked for.", metavar="EXPR")
@option("--search", "Setting whose best value is asked for instead, such as lr; or several.",
        multiple=True, metavar="COLUMN")  # fmt: skip
@option("--per", "What the runs of one search have in common, such as C; or several.",
        multiple=True, metavar="COLUMN")  # fmt: skip
@option("--budget", "What all chosen runs may cost.", _BUDGET, required=True)
@option("--law laws", "A candidate law, or several; by default config/advice.yaml's.",
        multiple=True)  # fmt: skip
@pairs_option("--map mapping", "Column of a variable, for all laws.",
              "VAR=COLUMN, such as N=N_active")  # fmt: skip
@option("--pool", "Runs to choose among: a table beside TABLE, else its own rows without a loss; "
        "or beside STUDY's grid another study's, or its own at another tier.",
        default="", metavar="TABLE|STUDY|TIER")  # fmt: skip
@option("--cost", "FLOPs of a run: SQL over the pool's columns.", default="C", metavar="EXPR")
@option("--rows", "Runs of the pool that may be chosen.", default="", metavar="EXPR")
@option("--noise", "Standard deviation of ln L between seeds.", between(1e-6, 1), 0.003)
@option("--tolerance", "Error at the target that is small enough.", between(0, 1), 0.001)
@option("--rounds", "Choose in so many rounds, each after the last one's losses.", COUNT, 1)
@option("--workers", "Runs that a round has at least.", COUNT, 1)
@option("--register", "Fix this rule beforehand, in config/preregistered.", is_flag=True)
@option("--cores", "Call Snakemake on so many cores, round after round.", metavar="N|all")
@option("--seed", "Seed of the draws.", WHOLE, 0)
def command(source: str, overrides: dict[str, Any], **words: Any) -> Answer:
    """Choose the runs that tell most of a target for what they cost.

    The runs are those of STUDY's grid, or of any TABLE. The draws of all candidate laws say how far
    each run's loss goes together with the target, so that a run counts on which laws disagree.

    With --search they are instead the runs that are expected to lower the least loss over these
    settings, of each search that --per tells apart.

    With --rounds, STUDY's next round is written to STUDY.rounds.yaml beside its file, which
    `snakemake --config runs=rounds` trains. With --cores, Snakemake is called, and the next
    round follows until the target's error is within --tolerance or the budget is spent. A second
    call goes on. With --register and the same options beforehand, rounds name the registration,
    and verdicts on their runs say whether the rule was kept to.
    """
    options = SimpleNamespace(**words)
    if [options.target is None, options.target_rows is None, not options.search].count(False) != 1:
        raise UserError(
            "say what the runs are for: --target C=1e21, --target-rows EXPR or --search lr"
        )
    from moelaws.cli import rounds  # loads what fits laws

    if Path(source).suffix in ("", ".yaml", ".yml"):
        return rounds.of_study(source, load_project(overrides=overrides), options)
    if options.rounds > 1 or options.cores or options.register:
        raise UserError(f"{source} is a table; --rounds, --cores and --register go with a study")
    return rounds.of_table(Path(source), options)

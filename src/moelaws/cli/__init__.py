"""``moelaws ...``: thin commands over the package, one module a command, imported when called."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from moelaws import __version__
from moelaws.spec.errors import UserError
from moelaws.spec.references import resolve

# Command -> one line of help, written here so that `moelaws --help` imports no command.
COMMANDS = {
    "grid": "List the runs that a study's grid expands to: sizes, FLOPs, estimated cost.",
    "corpus": "Prepare the text: tokenizer, token shards, hashes.",
    "train": "Train one run; it resumes by itself from its last checkpoint.",
    "probe": "Write the hidden states of a run whose weights were kept, after each layer.",
    "tasks": "List what trained models can be asked, or write it to a task file.",
    "bench": "Score a run whose weights were kept on tasks: accuracy, bits per byte.",
    "speed": "Measure how fast configurations train, side by side, and what memory they take.",
    "aggregate": "Collect the summaries of a study's runs in one Parquet table.",
    "import": "Make a study's table of somebody else's runs, by a mapping file.",
    "laws": "Show every law, or one: equation, source, parameters, published values, errata.",
    "eval": "Evaluate a law at one point.",
    "simulate": "Write a table of a law's losses at a grid's points, with noise.",
    "plan": "Tell how well a grid would determine the laws, and what it would cost.",
    "advise": "Tell how to spend a budget: what each law recommends, and what that may cost.",
    "outlook": "Write what fits and laws advise beyond a sweep's largest budget, as one page.",
    "fit": "Fit a law to a table, with intervals and diagnostics.",
    "compare": "Fit several laws to the same rows; show AIC, BIC and held-out errors side by side.",
    "contest": "Judge laws on rows that were kept from them, as an entry of a study says.",
    "contests": "Write which law to use for what, by the contests of the studies, as one page.",
    "derive": "Make a study's derived table, such as the isoFLOP optima.",
    "pin": "Make a search's laws of learning rate and batch those of the other studies.",
    "figure": "Draw one figure: PDF, PNG and the plotted numbers as CSV.",
    "table": "Write one of a study's paper tables: CSV, Markdown and LaTeX.",
    "judge": "Judge a study's claims by rule, from its tables and fits.",
    "claims": "Write the papers' claims beside what these runs show, as one page.",
    "explore": "Write one page to open in a browser: runs, curves, laws, figures, what they say.",
    "cover": "Write the report's first page, with the digest of all that it shows.",
    "watch": "Watch a sweep: runs done, running and failed, losses, speed, time left.",
    "why": "Say what a call of snakemake would run, and why each job.",
    "runs": "List the runs on record: status, loss, times; which ones other code made.",
    "show": "Show all on record of one run, or what a figure, table or fit was made of.",
    "verify": "Read everything that was made, and tell what is damaged, stale or orphaned.",
    "diff": "Show what differs between runs: configuration, code, packages, results.",
    "tag": "Give runs tags, such as baseline=yes, to find them by.",
    "note": "Write a note to runs.",
    "query": "Answer SQL over the tables and the runs on record.",
    "export": "Write runs for other programs: MLflow, TensorBoard, W&B, transformers.",
    "archive": "Write a finished sweep to one ZIP file with checksums, or verify such a file.",
}

# Where a command is that does not have a module of its own.
PLACES = {
    "derive": "entries:derive",
    "figure": "entries:figure",
    "table": "entries:table",
    "contests": "contest:contests",
    "tag": "annotate:tag",
    "note": "annotate:note",
    "import": "import_:command",  # a module cannot have the name of a statement
}


class Commands(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = resolve(__name__, PLACES.get(name, f"{name}:command"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if near := difflib.get_close_matches(args[0], COMMANDS) if args[0] not in COMMANDS else []:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Scaling laws of Mixture-of-Experts language models, from grid to figure.

    Run from the folder that holds config/config.yaml. Every command prints a table for people and,
    with --json, one JSON object. A user's mistake ends with exit code 2.
    """


def main() -> None:
    """Entry point: runs the command line."""
    # Without click's own handling, the code that a command ended with is returned here.
    end_as(lambda: cli(standalone_mode=False, prog_name="moelaws"))


def end_as(action: Callable[[], Any]) -> NoReturn:
    """Ends this process with the exit code that ``action`` returns.

    A user's mistake becomes one clear message.
    """
    try:
        sys.exit(action())
    except UserError as error:
        click.echo(f"moelaws: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("moelaws: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:  # a read-only folder, a path that is a directory, a full disk
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"moelaws: {where}{error.strerror or error}", err=True)
        sys.exit(2)
    except MemoryError as error:
        click.echo(f"moelaws: not enough memory: {error}; ask for less at a time", err=True)
        sys.exit(2)

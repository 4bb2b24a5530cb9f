"""What commands share: their options, what they make of words, and how they answer.

An answer is a text for people or, with ``--json``, one JSON object.
"""

import inspect
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, TextIO

import click

from moelaws.files.atomic import finite, read_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.numbers import amount
from moelaws.spec.words import visible

MOST_WARNINGS = 20
LONGEST_WORD = 30  # characters of a word that a folded cell does not break


class Visible(io.TextIOWrapper):
    """A standard stream that commands no terminal: tags and messages come from anyone's files."""

    def __init__(self, stream: TextIO) -> None:
        lines = bool(stream.line_buffering)
        super().__init__(stream.buffer, stream.encoding, stream.errors, None, lines, True)
        self.rich_proxied_file = stream  # rich draws here, by sequences of its own

    def write(self, text: str) -> int:
        return super().write(visible(text))

    def close(self) -> None:
        """Leaves the stream open to those that use it by itself."""


Data = dict[str, Any]  # of a JSON object
Answer = tuple[Any, object]  # what a command prints: data for --json, and a text for people


class JsonCommand(click.Command):
    """A command whose last option is ``--json``; it prints the ``Answer`` of its function.

    A function that prints as it goes takes ``as_json`` and returns nothing.
    """

    def __init__(self, *arguments: Any, **values: Any) -> None:
        super().__init__(*arguments, **values)
        help = "Print one JSON object."
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=help))

    def invoke(self, ctx: click.Context) -> None:
        assert self.callback is not None
        if "as_json" in inspect.signature(self.callback).parameters:
            super().invoke(ctx)
        else:
            print_answer(ctx.params.pop("as_json"), *super().invoke(ctx))


def json_command(function: Callable[..., Any]) -> click.Command:
    """Makes a command of ``function``, which has ``--json``; the group gives it its name."""
    return click.command(cls=JsonCommand)(function)


def print_answer(as_json: bool, data: Any, text: object) -> None:
    """Prints ``data`` as JSON where that is asked for, and otherwise ``text``.

    In JSON, numbers are such, NaN and inf are null, and dates and the like are texts.
    """
    click.echo(json.dumps(finite(data), allow_nan=False, default=str) if as_json else str(text))


def sentences(text: str) -> str:
    """Returns lines of words, folded where a terminal is too narrow."""
    width = shutil.get_terminal_size((sys.maxsize, 1)).columns  # a pipe has no bound
    return "\n".join(_folded(text, width))


def warn(*warnings: str) -> None:
    """Prints warnings on standard error; of very many, the first ones."""
    more = len(warnings) - MOST_WARNINGS
    shown = (*warnings[:MOST_WARNINGS], *[f"and {more} more like these"] * (more > 0))
    for text in shown:
        click.echo(f"moelaws: warning: {text}", err=True)


def warn_last(*warnings: str) -> None:
    """Prints warnings behind the command's answer."""
    click.get_current_context().call_on_close(partial(warn, *warnings))


def rows_text(rows: Iterable[Mapping[str, Any]], *columns: str) -> str:
    """Returns a table of those ``columns`` of rows of data."""
    return table_text(columns, [[row[name] for name in columns] for row in rows])


def table_text(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", cut: bool = False
) -> str:
    """Returns rows under headings; numbers are right-aligned.

    Where a terminal is too narrow, its widest texts are folded, or its last columns ``cut``, and a
    line then names them.
    """
    # By hand, for lists of 10,000 runs: 0.2 s, where tabulate takes 0.8 s and rich 13 s.
    data = [*rows]
    body = [[format_cell(cell) for cell in row] for row in data]
    numeric = [bool(data) and all(_is_number(row[i]) for row in data) for i in range(len(columns))]
    texts = ["\n".join(column) for column in zip(columns, *body, strict=True)]
    widths = [max(map(len, text.split("\n"))) for text in texts]
    terminal = shutil.get_terminal_size((sys.maxsize, 1)).columns  # a pipe has no bound
    fitting = sum(end <= terminal + 2 for end in accumulate(width + 2 for width in widths))
    hidden: Sequence[str] = ()
    if cut:
        columns, hidden, widths = columns[:fitting], columns[fitting:], widths[:fitting]
    room = terminal - 2 * (len(widths) - 1)
    words = [min(LONGEST_WORD, max(map(len, text.split()), default=0)) for text in texts]
    while sum(widths) > room and not cut:
        each = zip(widths, words, numeric, strict=True)
        spare = [0 if number else width - word for width, word, number in each]
        if not (most := max(spare)):
            break
        widths[spare.index(most)] -= 1
    lines = [title] * bool(title)
    for row in (columns, *body):
        folded = map(_folded, row, widths)
        for parts in zip_longest(*folded, fillvalue=""):
            cells = [
                f"{part:>{width}}" if number else f"{part:<{width}}"
                for part, width, number in zip(parts, widths, numeric, strict=False)
            ]
            lines.append("  ".join(cells).rstrip())
    if hidden:
        note = f"not shown: {', '.join(hidden)}; a wider window or | less -S shows them"
        lines += _folded(note, terminal)
    return "\n".join(lines)


def _folded(cell: str, width: int) -> list[str]:
    """Returns the lines of a cell, none longer than ``width``."""
    parts = []
    for line in cell.splitlines() or [""]:
        folds = len(line) > width
        parts += textwrap.wrap(line, width, break_on_hyphens=False) if folds else [line]
    return parts


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float | None) and not isinstance(cell, bool)


def format_cell(cell: object) -> str:
    """Returns a cell's text: whole numbers below a million in full, others to four digits."""
    if cell is None:
        return "-"
    is_large = isinstance(cell, int) and abs(cell) >= 1_000_000
    return f"{cell:.4g}" if is_large or isinstance(cell, float) else str(cell)


Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
Words = tuple[str, ...]  # of an argument or an option that may be repeated
Paths = tuple[Path, ...]
FILE = click.Path(path_type=Path)
INPUT = click.Path(path_type=Path, exists=True)  # refused before the work loads its libraries
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
REPEATS = click.IntRange(1, 1000)  # more are hours of work, and mostly a slip
WHOLE = click.IntRange(min=0)


@dataclass(eq=False)
class Value(click.ParamType[Any]):
    """A value that ``read`` makes of a text; unless it ``holds``, ``words`` say what is wrong."""

    name: str
    read: Callable[[str], Any]
    holds: Callable[[Any], bool]
    words: str

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):  # a default
            return value
        try:
            if not self.holds(converted := self.read(value)):
                raise ValueError
        except ValueError:
            self.fail(f"{value!r} is {self.words}", param, ctx)
        return converted


# The budget of a model that is to be the best one
BEST = Value("C=FLOPS", lambda text: amount(text.replace(" ", "").removeprefix("C=")),
             lambda C: 1 <= C < 1e100, "no budget, such as C=1e21")  # fmt: skip
COUNTS = Value("N,N,...", lambda text: tuple(map(int, text.split(","))),
                lambda counts: min(counts) >= 1 and max(counts) <= 10**6,
                "no list of counts, such as 8,16,32")  # fmt: skip

# A file, or FILE#HEADING: the one table of a page
TABLE = Value("TABLE", Path,
               lambda path: path.exists() or Path(str(path).partition("#")[0]).exists(),
               "no file")  # fmt: skip
PARAMS = Value("PARAMS", str, lambda text: text == "published" or Path(text).exists(), "no file")
RESULTS = Value("PATH", lambda text: Results(Path(text)), lambda results: True, "no path")
NAMES = Value("A,B,...", lambda text: [word.strip() for word in text.split(",")], all,
              "no list of names with commas between them, such as run_id,L")  # fmt: skip


def between(low: float, high: float) -> Value:
    """Returns the type of numbers in a range; click's own would let NaN pass."""
    words = f"no number from {low:g} to {high:g}"
    return Value("NUMBER", amount, lambda x: low <= x <= high, words)


def option(names: str, help: str, type: Any = None, default: Any = None, **more: Any) -> Decorator:
    """Returns the decorator of an option that shows its default.

    ``names`` is the option's name; another name of the parameter may follow behind a space.
    """
    if default is not None:
        more = {"default": default, "show_default": default not in ("", ()), **more}
    return click.option(*names.split(), type=type, help=help, **more)


results_option = option("--results", "Root of the records.", RESULTS, "results")
marker_option = option("--marker", "Write this file when all is done.", FILE)
table_option = option("--table", "The study's table; results/... by default.", INPUT)


def _join_study(_: click.Context, __: click.Parameter, file: str | None) -> None:
    if file is not None:
        from moelaws.spec.project import load_study

        load_study(file)


law_study_option = option(
    "--study",
    "YAML file of your own study that has the law.",
    metavar="FILE",
    expose_value=False,
    callback=_join_study,
)


def out_option(help: str, *suffixes: str) -> Decorator:
    """Returns the option ``--out``, which a command receives as a path or None.

    A file without one of the ``suffixes`` is refused, and so is one that cannot be written.
    """
    return option("--out", help, FILE, callback=lambda _, __, path: check_out(path, *suffixes))


def gathered(keyword: str, build: Callable[..., object], *options: Decorator) -> Decorator:
    """Returns a decorator that adds click's ``options`` to a command.

    The command receives, as ``keyword``, what ``build`` makes of the options by their names. A
    parameter of ``build`` that no option has keeps its default.
    """
    names = inspect.signature(build).parameters

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*arguments: Any, **values: Any) -> Any:
            built = build(**{name: values.pop(name) for name in names if name in values})
            return command(*arguments, **values, **{keyword: built})

        return with_options(*options)(wrapped)

    return decorate


def with_options(*options: Decorator) -> Decorator:
    """Returns a decorator that adds click's ``options`` to a command, in the order of its help."""

    def decorate(command: Command) -> Command:
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


def pairs(option: str, texts: Sequence[str], form: str) -> dict[str, str]:
    """Returns ``NAME=VALUE`` options as a dictionary."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UserError(f"{option} {text!r} is not {form}".lstrip())
        if name in values:
            raise UserError(
                f"{option} {name} is given twice: {values[name]!r} and {value!r}".lstrip()
            )
        values[name] = value
    return values


def pairs_option(names: str, help: str, form: str) -> Decorator:
    """Returns an option NAME=VALUE that may be repeated; the command receives a dictionary.

    ``form`` says what it is, such as ``VAR=COLUMN, such as L=loss``.
    """
    word, metavar = names.split()[0], form.partition(",")[0]
    return option(
        names,
        help,
        multiple=True,
        metavar=metavar,
        callback=lambda _, __, texts: pairs(word, texts, form),
    )


def read_named(word: str, results: Results) -> tuple[Path | str, Any]:
    """Returns the JSON that a word of the command line names, behind the place where it stands.

    The word is a file, - for standard input, or a run on record by its id or its name.
    """
    from moelaws.records.names import find_record  # a file is read without the records

    if word == "-":
        where = "standard input"
        return where, parse_json(sys.stdin.buffer.read(), where)
    path = Path(word)
    if (not path.suffix or " " in word) and not path.is_file():
        path = results.run(find_record(results, word).run_id) / "config.json"
    return path, read_json(path)


def check_out(path: Path | None, *suffixes: str, option: str = "--out") -> Path | None:
    """Returns an ``option``'s file; refuses, before any work, one that cannot be written."""
    if path is None or not suffixes:
        return path
    if path.suffix not in suffixes:
        allowed = " or ".join(suffixes)
        raise UserError(f"{option} is {str(path)!r}; its name must end in {allowed}")
    if path.is_dir():
        raise UserError(f"{option} is {str(path)!r}, which is a folder; give the name of a file")
    folder = path.absolute().parent
    while not folder.exists():  # missing folders are made when the file is written
        folder = folder.parent
    if not folder.is_dir():
        raise UserError(f"{option} is {str(path)!r}, but {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{option} is {str(path)!r}, but the folder {folder} cannot be written to")
    return path

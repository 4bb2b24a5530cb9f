"""The options that commands share, and what they make of the words of a command line."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.numbers import amount

Command = Callable[..., Any]
Words = tuple[str, ...]  # of an argument or an option that may be repeated
Paths = tuple[Path, ...]
FILE = click.Path(path_type=Path)
INPUT = click.Path(path_type=Path, exists=True)  # refused before the work loads its libraries
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
REPEATS = click.IntRange(1, 1000)  # more are hours of work, and mostly a slip
WHOLE = click.IntRange(min=0)


class Value(click.ParamType[Any]):
    """A value that ``read`` makes of a text; unless it ``holds``, ``words`` say what is wrong."""

    def __init__(
        self, name: str, read: Callable[[str], Any], holds: Callable[[Any], bool], words: str
    ) -> None:
        self.name, self.read, self.holds, self.words = name, read, holds, words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):  # a default
            return value
        try:
            if not self.holds(converted := self.read(value)):
                raise ValueError
        except (AttributeError, KeyError, ValueError):
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


def option(
    names: str, help: str, type: Any = None, default: Any = None, **more: Any
) -> Callable[[Command], Command]:
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


def out_option(help: str, *suffixes: str) -> Callable[[Command], Command]:
    """Returns the option ``--out``, which a command receives as a path or None.

    A file without one of the ``suffixes`` is refused, and so is one that cannot be written.
    """
    return option("--out", help, FILE, callback=lambda _, __, path: check_out(path, *suffixes))


def gathered(
    keyword: str, build: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Returns a decorator that adds click's ``options`` to a command.

    The command receives, as ``keyword``, what ``build`` makes of the options by their names. A
    parameter of ``build`` that no option has keeps its default.
    """
    names = tuple(inspect.signature(build).parameters)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*arguments: Any, **values: Any) -> Any:
            built = build(**{name: values.pop(name) for name in names if name in values})
            return command(*arguments, **values, **{keyword: built})

        return with_options(*options)(wrapped)

    return decorate


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
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
            both = f"{values[name]!r} and {value!r}"
            raise UserError(f"{option} {name} is given twice: {both}".lstrip())
        values[name] = value
    return values


def pairs_option(names: str, help: str, form: str) -> Callable[[Command], Command]:
    """Returns an option NAME=VALUE that may be repeated; the command receives a dictionary.

    ``form`` says what it is, such as ``VAR=COLUMN, such as L=loss``.
    """
    word, metavar = names.split()[0], form.partition(",")[0]
    read = partial(pairs, word, form=form)
    return option(
        names, help, multiple=True, metavar=metavar, callback=lambda _, __, texts: read(texts)
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

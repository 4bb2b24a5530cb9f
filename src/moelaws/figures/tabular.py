"""A paper's table made from the user's own runs: CSV in full precision, Markdown and LaTeX."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from moelaws.files.atomic import replacing, write_text
from moelaws.spec.words import without_tags

_WORDS = {"~": "asciitilde", "^": "asciicircum", "\\": "backslash", "<": "less", ">": "greater"}
_TEX = str.maketrans({sign: f"\\{sign}" for sign in "&%$#_{}"})
_TEX |= str.maketrans({sign: f"\\text{word}{{}}" for sign, word in _WORDS.items()})
# Mathematics has no commands: \input or, for TeX the same, ^^5cinput would read a file.
_MATH = re.compile(r"([^\\^%]|\^(?!\^))*")


@dataclass
class Tabular:
    """Rows of numbers and words under headings, with notes and warnings."""

    frame: pd.DataFrame  # its index is not shown, and missing values are left blank
    digits: int = 4  # significant digits in Markdown and LaTeX
    notes: Sequence[str] = ()  # sentences below the table
    warnings: list[str] = field(default_factory=list)  # for the user's terminal

    def cells(self) -> list[list[str]]:
        """Returns the body as text, a list for each row."""
        return [[self._cell(value) for value in row] for row in self.frame.itertuples(index=False)]

    def _cell(self, value: Any) -> str:
        if pd.isna(value):
            return ""
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            return str(value)
        number = float(value)
        if number.is_integer() and abs(number) < 1e6:
            return f"{number:.0f}"
        return f"{number:.{self.digits}g}"

    def markdown(self, caption: str) -> str:
        """Returns the table in GitHub's Markdown, numbers aligned right."""
        right = self._right()
        lines = [caption, "", _row([str(name).replace("|", r"\|") for name in self.frame.columns])]
        lines.append("|" + "|".join("-:" if numeric else "-" for numeric in right) + "|")
        lines += [_row([cell.replace("|", r"\|") for cell in row]) for row in self.cells()]
        return without_tags("\n".join(lines + [f"\n{note}" for note in self.notes]) + "\n")

    def latex(self, caption: str, label: str) -> str:
        """Returns the table as a LaTeX environment in the style of booktabs."""
        rows = [list(map(str, self.frame.columns)), *self.cells()]
        head, *body = (" & ".join(map(_tex, row)) + r" \\" for row in rows)
        columns = "".join("r" if numeric else "l" for numeric in self._right())
        notes = [r"\par\smallskip " + _tex(note) for note in self.notes]
        before = [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering"]
        before += [rf"\caption{{{_tex(caption)}}}", rf"\label{{{label}}}"]
        before += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
        after = [r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]
        return "\n".join([*before, *body, *after]) + "\n"

    def write(self, path: Path, caption: str, label: str, mark: str = "") -> None:
        """Writes CSV, Markdown and LaTeX, whose names have the stem of ``path``.

        A ``mark`` begins their captions, and the CSV repeats it in a column ``data``.
        """
        frame = self.frame.assign(data=mark) if mark else self.frame
        caption = f"{mark}. {caption}" if mark else caption
        with replacing(path.with_suffix(".csv")) as temporary:
            frame.to_csv(temporary, index=False, lineterminator="\n")
        write_text(path.with_suffix(".md"), self.markdown(caption))
        write_text(path.with_suffix(".tex"), self.latex(caption, label))

    def _right(self) -> list[bool]:
        return [pd.api.types.is_numeric_dtype(kind) for kind in self.frame.dtypes]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _tex(text: str) -> str:
    """Returns text escaped for LaTeX, but for mathematics between dollar signs."""
    pieces = text.split("$")
    is_math = all(map(_MATH.fullmatch, pieces[1::2]))
    if len(pieces) % 2 == 0 or not is_math:  # a lone dollar sign is money
        return text.translate(_TEX)
    return "".join(f"${x}$" if i % 2 else x.translate(_TEX) for i, x in enumerate(pieces))

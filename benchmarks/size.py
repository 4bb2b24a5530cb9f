"""Count how large the project is: tokens of Python by package, and lines of all else.

    python benchmarks/size.py [--files PACKAGE]

A token is what CPython 3.11's ``tokenize`` yields, without comments, docstrings and layout: so a
line break and a sentence that says why cost nothing. Other versions split some texts into several
tokens and count more. ``--files`` lists the files of one package, such as ``fitting``, instead.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LINES = {
    "rules": ("Snakefile", "workflow/Snakefile", "workflow/rules/*.smk"),
    "config": ("config/**/*.yaml",),
    "tables beside modules": ("src/moelaws/**/*.toml",),
    "page": ("src/moelaws/explore/page/*",),
    "benchmarks": ("benchmarks/**/*.py",),
    "tests": ("tests/**/*.py",),
}


def tokens(path: Path) -> int:
    """Returns how many tokens of the file at ``path`` count."""
    nodes = [
        node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, DOCUMENTED)
    ]
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in nodes
        if ast.get_docstring(node, clean=False) is not None
    }
    with path.open("rb") as file:
        found = list(tokenize.tokenize(file.readline))[1:]  # the first one is the encoding
    return sum(token.type not in LAYOUT and token.start not in docstrings for token in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", metavar="PACKAGE", default="")
    asked = parser.parse_args().files
    source = ROOT / "src" / "moelaws"
    counts: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        inside = path.relative_to(source)
        if not asked:
            counts[inside.parts[0] if len(inside.parts) > 1 else "(top)"] += tokens(path)
        elif inside.parts[0] == asked:
            counts[str(inside)] += tokens(path)
    for name, count in counts.most_common():
        print(f"{count:9,}  {name}")
    print(f"{sum(counts.values()):9,}  tokens in all")
    if sys.version_info[:2] != (3, 11):
        print("Python 3.11 counts; this version may count texts in f-strings several times.")
    if not asked:
        for name, patterns in LINES.items():
            files = [path for pattern in patterns for path in ROOT.glob(pattern)]
            lines = sum(path.read_text().count("\n") for path in files)
            print(f"{lines:9,}  lines of {name}")


if __name__ == "__main__":
    main()

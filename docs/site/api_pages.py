"""What is public in Python: the names that the pages' own programs import, from their source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from text import docstring

from moelaws import laws

PAGE = "reference/api.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
WRITTEN = re.compile(r"# src/([\w/]+)\.py\n")  # a file that the reader is to write
SOURCE = Path("src")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Used = dict[str, dict[str, set[str]]]  # module -> name, or "" for all of it -> pages


def on_files(files: Files, *, config: Any) -> None:
    content = "\n\n".join(_page(_used(Path(config.docs_dir)))) + "\n"
    files.append(File.generated(config, PAGE, content=content))


def _file(module: str) -> Path | None:
    stem = SOURCE.joinpath(*module.split("."))
    return next((f for f in (stem.with_suffix(".py"), stem / "__init__.py") if f.is_file()), None)


def _used(docs: Path) -> Used:
    """What the programs on the pages import of the package; a law's own module has its own page."""
    used: Used = defaultdict(lambda: defaultdict(set))
    modules_of_laws = {laws.module(ref) for ref in laws.ids()}
    for page in sorted(docs.glob("*.md")):
        blocks = BLOCK.findall(page.read_text())
        own = {match[1].replace("/", ".") for b in blocks if (match := WRITTEN.match(b))}
        for block in blocks:
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moelaws"):
                    for alias in node.names:
                        module = f"{node.module}.{alias.name}"
                        if module in modules_of_laws | own:
                            continue
                        of, name = (
                            (module, "") if _file(module) else (node.module or "", alias.name)
                        )
                        used[of][name].add(page.name)
    return used


def _page(used: Used) -> Iterator[str]:
    yield "# From Python"
    yield (
        "These are the names that the programs in this documentation import. Other names are "
        "internal and may change without notice. Each law's declaration is the name `LAW` of its "
        "module, and has [a page of its own](laws/index.md). Mistakes of a user raise "
        "`moelaws.spec.errors.UserError`, whose text says what to do."
    )
    for module in sorted(used):
        file = _file(module)
        assert file is not None, f"a page imports {module}, which is not there"
        tree = ast.parse(file.read_text())
        yield f"## {module}"
        yield docstring((ast.get_docstring(tree) or "").partition("\n\n")[0])
        for name in _names(tree, used[module]):
            node, source = _definition(tree, module, name)
            yield from _entry(node, source)
            if pages := used[module].get(name):
                links = ", ".join(f"[{Path(p).stem}](../{p})" for p in sorted(pages))
                yield f"It is used in {links}."


def _names(tree: ast.Module, names: dict[str, set[str]]) -> list[str]:
    """The names asked for; where the whole module is, its public functions too."""
    public = {n.name for n in tree.body if isinstance(n, Function) and not n.name.startswith("_")}
    return sorted((names.keys() | public) - {""}) if "" in names else sorted(names)


def _definition(tree: ast.Module, module: str, name: str) -> tuple[ast.stmt, str]:
    """Where ``name`` is defined, in this module or in the one that it comes from."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return node, name
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name and (file := _file(node.module)):
                    return _definition(ast.parse(file.read_text()), node.module, alias.name)
        if isinstance(node, ast.Assign) and any(ast.unparse(t) == name for t in node.targets):
            return node, name
    raise LookupError(f"a page imports {name} of {module}, which does not define it")


def _entry(node: ast.stmt, name: str) -> Iterator[str]:
    yield f"### {name}"
    if isinstance(node, Function):
        yield _signature(node)
        yield docstring(ast.get_docstring(node) or "")
    elif isinstance(node, ast.ClassDef):
        yield _fields(node)
        yield docstring(ast.get_docstring(node) or "")
        for method in node.body:
            if isinstance(method, Function) and not method.name.startswith("_"):
                yield _signature(method)
                yield docstring(ast.get_docstring(method) or "")
    else:
        yield f"```python\n{ast.unparse(node)}\n```"


def _signature(node: Function) -> str:
    decorated = [f"@{ast.unparse(d)}" for d in node.decorator_list if ast.unparse(d) == "property"]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = ast.unparse(node.args)
    if len(f"{node.name}({arguments}){returns}") > 88:
        names = "|".join(a.arg for a in (*node.args.args, *node.args.kwonlyargs))
        lines = re.sub(rf", (?=\*|({names}):)", ",\n    ", arguments)  # not in a type or a lambda
        arguments = f"\n    {lines},\n"
    line = f"{node.name}({arguments}){returns}"
    return "```python\n" + "\n".join([*decorated, line]) + "\n```"


def _fields(node: ast.ClassDef) -> str:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    fields = [
        f"    {ast.unparse(n)}"
        for n in node.body
        if isinstance(n, ast.AnnAssign) and not ast.unparse(n.target).startswith("_")
    ]
    head = f"class {node.name}" + (f"({bases})" if bases else "") + (":" if fields else "")
    return "```python\n" + "\n".join([head, *fields]) + "\n```"

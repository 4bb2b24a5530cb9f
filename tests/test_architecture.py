"""The arrows between packages, and what must stay light, read from the source text."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from repository import REPOSITORY

PACKAGE = REPOSITORY / "src/moelaws"
FILES = sorted(PACKAGE.rglob("*.py"))

# Package -> packages that it may import; each knows only those that come before it.
NEEDS = {
    "spec": "",
    "accounting": "spec",
    "laws": "spec",
    "files": "spec",
    "records": "spec accounting files",
    "gpus": "spec",
    "corpus": "spec records",
    "model": "spec accounting",
    "training": "spec accounting records corpus model",
    "grids": "spec accounting laws records corpus",
    "tables": "spec accounting laws records grids",
    "fitting": "spec laws records tables",
    "analysis": "spec accounting laws records tables fitting",
    "figures": "spec laws records tables fitting analysis",
    "claims": "spec laws records tables fitting analysis",
    "explore": "spec laws records grids tables fitting analysis claims",
    "tasks": "spec records corpus",
    "probing": "spec records corpus model training tasks",
    "exports": "spec accounting records corpus model training grids tables",
    "workflow": "spec accounting laws records gpus corpus grids tables tasks",
}
ALLOWED = {package: set(others.split()) for package, others in NEEDS.items()}
for allowed in ALLOWED.values():
    if "records" in allowed:
        allowed.add("files")
# The core never imports a study, and no study another one.
CORE = set(ALLOWED)
ALLOWED["studies"] = ALLOWED["claims"] | {"accounting", "figures", "claims"}
ALLOWED["cli"] = CORE
ALLOWED[""] = {"cli"}  # where the command line starts

# Distribution -> the packages that may import it: the rest runs where it is not installed.
HOMES = {
    "torch": {"corpus", "model", "training", "probing", "exports"},
    "scipy": {"fitting"},
    "matplotlib": {"figures", "studies"},
    "plotly": {"explore"},
    "PIL": {"explore"},
    "markdown_it": {"explore"},
    "datasets": {"corpus"},
    "transformers": set(),  # an export for it needs nothing of it
    "mlflow": {"exports"},
    "tensorboard": {"exports"},
    "wandb": {"exports"},
    "click": {"cli"},
    "snakemake": set(),
}
HEAVY = ("torch", "scipy", "pandas", "matplotlib", "datasets", "tokenizers")
LIGHT = {"moelaws.corpus.sources", "moelaws.corpus.tokenizer"}
MOST_LINES = 400


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Dotted names that ``path`` imports anywhere but for type checking, as far as modules go."""
    return tuple(_imported(ast.parse(path.read_text(encoding="utf-8")).body))


def _imported(nodes: list[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "what a job depends on is read from absolute imports"
            assert node.module
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if source(name) else node.module
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            yield from _imported(list(inner))


def source(module: str) -> Path | None:
    """The file of a module of this package."""
    first, *rest = module.split(".")
    stem = PACKAGE.joinpath(*rest)
    files = (stem.with_suffix(".py"), stem / "__init__.py") if rest else (stem / "__init__.py",)
    return next((f for f in files if f.is_file()), None) if first == "moelaws" else None


def package(path: Path) -> str:
    """The package of a file: the first name below moelaws; empty for moelaws itself."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_imports_point_one_way():
    wrong = []
    for path in FILES:
        mine = package(path)
        for module in imports(path):
            target = source(module)
            if target is None or package(target) in ("", mine):
                continue
            # The Snakefile expands grids at each parse: of the corpus they know what it is made of.
            heavy = (mine, package(target)) == ("grids", "corpus") and module not in LIGHT
            if package(target) not in ALLOWED[mine] or heavy:
                wrong.append(f"{name(path)} imports {module}")
    assert wrong == []


def test_a_study_imports_no_other_study():
    wrong = [
        f"{name(path)} imports {module}"
        for path in FILES
        for module in imports(path)
        if package(path) == "studies" and module.startswith("moelaws.studies.")
        if module.split(".")[2] != path.relative_to(PACKAGE).parts[1]
    ]
    assert wrong == []


def test_studies_laws_import_laws_alone():
    above = {
        f"{name(path)} imports {module}"
        for path in PACKAGE.glob("studies/*/laws/*.py")
        for module in imports(path)
        if (target := source(module)) and package(target) not in ("", "spec", "laws", "studies")
    }
    assert above == set()


def test_only_the_resolver_and_the_laws_import_by_name():
    """Names are references: nothing else turns a text into a module."""
    users = {name(p) for p in FILES if re.search(r"\b(import_module|__import__)\(", p.read_text())}
    foreign = {"model/megablocks/backend.py"}
    assert users - foreign == {"spec/references.py", "laws/__init__.py"}


def test_no_import_cycles():
    targets = {path: {source(module) for module in imports(path)} - {None} for path in FILES}
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(map(name, error.args[1])))


@pytest.mark.parametrize("distribution", HOMES)
def test_a_distribution_stays_in_its_homes(distribution):
    users = {package(p) for p in FILES for m in imports(p) if m.split(".")[0] == distribution}
    assert users <= HOMES[distribution]


def test_laws_need_numpy_alone():
    for path in [*PACKAGE.glob("laws/**/*.py"), *PACKAGE.glob("studies/*/laws/*.py")]:
        roots = {module.split(".")[0] for module in imports(path)}
        assert roots <= {"moelaws", "numpy"} | sys.stdlib_module_names, name(path)


def test_a_file_is_one_idea():
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: n for name, n in lines.items() if n >= MOST_LINES} == {}


def loaded_by(code: str) -> set[str]:
    """Which of the heavy distributions a fresh interpreter has loaded after ``code``."""
    ask = f"\nimport sys\nprint(*(set({HEAVY!r}) & sys.modules.keys()), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + ask], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_what_the_snakefile_imports_is_light():
    """It is parsed at every call and again in each of a cluster's jobs."""
    rules = [REPOSITORY / "workflow/Snakefile", *REPOSITORY.glob("workflow/rules/*.smk")]
    lines = [
        line
        for path in rules
        for line in re.findall(
            r"^(?:from moelaws\S* import (?:\([^)]*\)|.+)|import moelaws.*)", path.read_text(), re.M
        )
    ]
    assert any("Jobs" in line for line in lines)
    assert loaded_by("\n".join(lines)) == set()


def test_no_command_loads_more_than_it_needs_before_it_begins():
    """Help, and each mistake in a command's words, come at once."""
    code = (
        "import click\n"
        "from moelaws.cli import COMMANDS, cli\n"
        "for name in COMMANDS:\n"
        "    cli.get_command(click.Context(cli), name)\n"
    )
    assert loaded_by(code) == set()

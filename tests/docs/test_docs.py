"""What README and the pages in docs/ say, done: their code blocks run in a copy of the repository.

A `python` or `yaml` block whose first line is `# PATH` is that file; `# PATH, under KEY:` goes into
the file behind the line `KEY:`. Another `python` block is a program.
"""

import re
import sys

import pytest
from click import Context, Group

from moelaws import laws
from moelaws.cli import COMMANDS, cli
from moelaws.files.layout import WEIGHTS, Results
from moelaws.spec.grid import Derivations
from moelaws.spec.hyperparameters import read_pinned
from moelaws.tables.schema import TRAINED_COLUMNS
from page_blocks import answered, blocks, check_console, run
from repository import REPOSITORY, copy_repository

PAGES = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]
SLOW = {
    "adding-a-law.md", "adding-a-study.md", "advice.md", "corpora.md", "exports.md", "fitting.md",
    "importing.md", "laws.md", "planning.md", "tasks.md", "training.md",
}  # fmt: skip
OVER_A_SWEEP = {"tracking.md"}  # tests/workflow runs these, where a sweep is finished
CONCEPTS = (REPOSITORY / "docs/concepts.md").read_text()
PLACE = re.compile(r"# ([\w./-]+/[\w./-]+)(?:, under (\w+):)?\n")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "moelaws"  # a page may write beside it, as a user's own study is
    root.mkdir()
    copy_repository(root)
    return root


def write(file, key, text):
    if key is None:
        assert not file.exists(), f"{file} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    else:
        before, line, after = file.read_text().partition(f"\n{key}:\n")
        assert line, f"{file} has no line {key}:"
        file.write_text(before + line + text + after)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in PAGES
        if blocks(page) and page.name not in OVER_A_SWEEP
    ],
)
def test_a_pages_blocks_run(root, page):
    of_page = blocks(page)
    changes_the_package = any(text.startswith("# src/moelaws/") for _, text in of_page)
    for language, text in of_page:
        if place := PLACE.match(text):
            write(root / place[1], place[2], text[place.end() :])
        elif language == "console" and changes_the_package:
            check_console(root, text)
        elif language == "console":
            check_console(root, text, answered)
        else:
            assert language == "python", f"a block without its file: {text}"
            run(root, sys.executable, "-c", text)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^):]*))?\)", page.read_text()):
        assert (page.parent / target).exists(), target
        if anchor:
            assert anchor in anchors(page.parent / target if target else page), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page):
    text = page.read_text()
    languages = {"python", "yaml", "toml", "console", "text"}
    assert set(re.findall(r"^```(\w+)$", text, re.M)) <= languages
    for name, words in re.findall(r"(?:`|\$ |&& )moelaws (\w+)([^`|&;#\n]*)", text):
        command = cli.get_command(Context(cli), name)
        assert command, name
        if isinstance(command, Group) and (word := re.match(r" ([a-z][\w-]*)", words)):
            command = command.get_command(Context(command), word[1])
            assert command, f"{name}{words}"
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert set(re.findall(r"(?<= )--[\w-]+", words)) <= known, f"{name}{words}"


def test_every_command_is_at_a_glance():
    assert set(re.findall(r"^\| `moelaws (\w+)", CONCEPTS, re.M)) >= set(COMMANDS)


def test_every_law_is_on_its_page():
    page = (REPOSITORY / "docs/laws.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.M)
    assert {name for row in rows for name in re.findall(r"`([\w.]+)`", row)} == set(laws.ids())


def test_the_layout_is_that_of_results():
    text, results = CONCEPTS, Results()
    tier = results.tier("<tier>")
    for path in (
        results.corpus("<corpus_id>") / "meta.json",
        results.summary("<run_id>"),
        results.checkpoint("<run_id>"),
        results.weights("<run_id>") / WEIGHTS,
        tier.table("<study>"),
        tier.fit("<study>", "<fit>"),
        tier.derived("<study>", "<name>"),
        tier.figure("<study>", "<figure>"),
        results.tier("<tier>", simulated=True).root,
        tier.report,
    ):
        assert f"`{path.relative_to(results.root)}" in text


def test_every_rule_of_a_grid_is_explained():
    page = (REPOSITORY / "docs/adding-a-study.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| `\{rule: (\w+)", page, re.M)
    explained = {(name, rule) for names, rule in rows for name in re.findall(r"\w+", names)}
    schema = Derivations.model_json_schema()
    rules = {
        (name, reference["$ref"].rpartition("/")[2])
        for name, field in schema["properties"].items()
        for option in field["anyOf"]
        for reference in option.get("oneOf", [option])
        if "$ref" in reference
    }
    rule = {name: model["properties"].get("rule", {}) for name, model in schema["$defs"].items()}
    words = {model: says.get("enum", [says.get("const")]) for model, says in rule.items()}
    assert explained == {(name, word) for name, model in rules for word in words[model]}


def test_the_map_names_what_is_there():
    page = (REPOSITORY / "docs/map.md").read_text()
    roots = (REPOSITORY, REPOSITORY / "src/moelaws", REPOSITORY / "src/moelaws/studies/sparsity")
    for path in re.findall(r"`((?!results/)[\w.-]+/[\w./-]*)`", page):
        assert any((root / path).exists() for root in roots), path
    rooms = re.findall(r"^\| `(\w+)/` ", page, re.M)
    packages = (REPOSITORY / "src/moelaws").glob("*/__init__.py")
    assert sorted(rooms) == sorted(path.parent.name for path in packages)


def test_the_columns_are_the_tables():
    section = CONCEPTS.partition("## The table's columns")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`.*?) \|", section, re.M)
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert {"N_total", "C", "L"} < named <= {column.name for column in TRAINED_COLUMNS}


def test_the_demos_learning_rates_are_those_pinned():
    page = " ".join((REPOSITORY / "docs/demo.md").read_text().split())
    pinned = read_pinned("demo", REPOSITORY)
    assert pinned is not None
    assert f"lr = {pinned.lr.coefficient:.3g} C^{pinned.lr.exponent:.3f}" in page
    assert f"batches of {pinned.batch_tokens.at(1e11):.0f} tokens" in page

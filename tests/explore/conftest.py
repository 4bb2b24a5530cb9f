"""The published runs of the tier workstation as a tree of results, records, and a browser."""

import hashlib
import json
import os
import shutil

import pytest
from page_data import page_data

from moelaws.explore.material import Material
from moelaws.explore.page import render
from moelaws.files.atomic import write_json, write_page
from moelaws.files.layout import Results
from moelaws.spec.project import Project, load_study
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"


def material_in(root):
    """The study sparsity at the tier workstation, with all published files below ``root``."""
    folder = root / "workstation"
    for kind in ("fits", "contests", "figures"):
        shutil.copytree(EVIDENCE / kind / "sparsity", folder / kind / "sparsity")
    (folder / "tables").mkdir()
    shutil.copy(EVIDENCE / "sparsity.parquet", folder / "tables")
    for name in ("laws.md", "outlook.md"):
        write_page(folder / name, (EVIDENCE / name).read_text())
    project = Project(tier="workstation", studies=("sparsity",))
    study = load_study("sparsity", REPOSITORY).at_tier("workstation")
    declared = {path for path in folder.rglob("*") if path.name != "outlook.md"}
    return Material(project, (study,), {}, declared, results=Results(root))


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """The tier for tests that leave it as it is."""
    return material_in(tmp_path_factory.mktemp("results"))


@pytest.fixture
def own(tmp_path):
    """The tier for a test that changes it."""
    return material_in(tmp_path)


@pytest.fixture
def record(tmp_path):
    """A function that writes the record of a run and returns the run's identity."""

    def write(number, message="", status="completed"):
        text = json.dumps({"seed": number})
        run_id = hashlib.sha256(text.encode()).hexdigest()[:16]
        folder = Results(tmp_path).run(run_id)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(text)
        write_json(folder / "provenance.json", {"code": "c", "started": "now", "device": "cpu"})
        summary = {"run_id": run_id, "status": status, "message": message, "steps": 9}
        write_json(folder / "summary.json", summary)
        return run_id

    return write


# A browser that runs as root in a container has no sandbox; it asks no host for anything.
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    stop = pytest.fail if os.environ.get("MOELAWS_BROWSER") == "required" else pytest.skip
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        stop("Playwright is not installed; how to run these: tests/explore/test_page.py")
    if not program:
        stop("there is no chromium on the PATH; how to run these: tests/explore/test_page.py")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    """The page of 60 runs as a file."""
    path = tmp_path_factory.mktemp("page") / "explore.html"
    path.write_text(render(page_data()), encoding="utf-8")
    return path


@pytest.fixture
def visit(browser):
    """Opens a file; at the end nothing may have gone wrong on it, and no host been asked."""
    wrong, contexts = [], []

    def open_(path, width=1280, scheme="light", place=""):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requested(request.url, path))
        page.goto(path.as_uri() + place)
        page.wait_for_selector("#answers")
        return page

    def requested(url, path):
        if url.split("#")[0] != path.as_uri() and not url.startswith(("data:", "blob:")):
            wrong.append(f"asked for {url}")

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []

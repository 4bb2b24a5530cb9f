"""A headless Chromium for the page's tests, by Playwright:

    pip install --no-deps --target OVERLAY -r envs/browser.txt     (and a Chromium of the system)
    PYTHONPATH=OVERLAY pytest tests/explore/test_page.py -m slow

With MOELAWS_BROWSER=required a test that would be skipped for lack of either fails.
"""

import os
import shutil

import pytest
from page_data import page_data

from moelaws.explore.page import render

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
        stop("Playwright is not installed; how to run these: tests/explore/conftest.py")
    if not program:
        stop("there is no chromium on the PATH; how to run these: tests/explore/conftest.py")
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
        page.on("request", lambda asked: requested(asked.url, path))
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

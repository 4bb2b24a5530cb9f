"""The built site, opened from its folder in a headless Chromium: its search, and what it copies.

    pip install --no-deps --target OVERLAY -r envs/docs.txt -r envs/browser.txt
    PYTHONPATH=OVERLAY pytest tests/docs/test_site_search.py -m slow

With MOELAWS_BROWSER=required a test that would be skipped for lack of either fails.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from repository import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    stop = pytest.fail if os.environ.get("MOELAWS_BROWSER") == "required" else pytest.skip
    for name in ("mkdocs", "playwright"):
        if importlib.util.find_spec(name) is None:
            stop(f"{name} is not installed; how to run these: tests/docs/test_site_search.py")
    if not shutil.which("chromium"):
        stop("there is no chromium on the PATH")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder]
    subprocess.run(build, cwd=REPOSITORY, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture
def visit(site):
    """Opens a page of the site; no host may be asked for anything, and nothing may go wrong."""
    from playwright.sync_api import sync_playwright

    wrong = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or wrong.append(request.url),
        )

        def open_(name):
            page.goto((site / name).as_uri())
            return page

        yield open_
        browser.close()
    assert wrong == []


@pytest.mark.parametrize("word", ["advise", "serve memory"])
def test_a_command_is_found_where_it_is_explained(visit, word):
    page = visit("index.html")
    box = page.locator(".md-search__input")
    box.click()
    box.fill(word)
    box.press("Shift")  # the search listens to keys
    link = page.locator(".md-search-result__link").first
    link.wait_for(timeout=30_000)
    assert link.get_attribute("href").split("?")[0].endswith("/advice.html")


def test_commands_are_copied_without_prompt_and_output(visit):
    page = visit("advice.html")
    page.evaluate("addEventListener('copy', event => window.copied = event.target.value)")
    source = (REPOSITORY / "docs/advice.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", source, re.M | re.S)
    buttons = page.locator("[data-md-type=copy]").all()
    assert len(buttons) == len(blocks)
    assert {language for language, _ in blocks} > {"console"}
    for (language, text), button in zip(blocks, buttons, strict=True):
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        button.dispatch_event("click")
        copied = page.evaluate("window.copied").replace("\r", "")
        assert copied == ("\n".join(commands) if language == "console" else text.rstrip())

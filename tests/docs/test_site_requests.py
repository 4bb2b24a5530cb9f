"""The check that the built site loads nothing from another host finds each way to do so."""

import subprocess
import sys

import pytest

from repository import REPOSITORY


def check(site):
    command = [sys.executable, REPOSITORY / ".ci/site_requests.py", site]
    return subprocess.run(command, capture_output=True, text=True)


def test_links_to_other_hosts_load_nothing(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="https://example.org">see</a> <img src="a.png"> <code>//example.org</code>'
    )
    assert check(tmp_path).returncode == 0


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<img srcset="a.png 1x, https://example.org/b.png 2x">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)">',
        '<pre class="mermaid">graph</pre>',
    ],
)
def test_what_loads_from_another_host_is_found(tmp_path, page):
    (tmp_path / "index.html").write_text(page)
    done = check(tmp_path)
    assert done.returncode == 1, done
    assert done.stdout.startswith("index.html: "), done


def test_no_site_is_no_success(tmp_path):
    assert "build the site first" in check(tmp_path).stderr

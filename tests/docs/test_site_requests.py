"""The check that the built site loads nothing from another host finds each way to do so."""

import runpy

import pytest

from repository import REPOSITORY

requests = runpy.run_path(str(REPOSITORY / ".ci/site_requests.py"))["requests"]


def test_links_to_other_hosts_load_nothing(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="https://example.org">see</a> <img src="a.png"> <code>//example.org</code>'
    )
    assert requests(tmp_path) == []


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
    (request,) = requests(tmp_path)
    assert request.startswith("index.html: ")


def test_no_site_is_no_success(tmp_path):
    with pytest.raises(SystemExit, match="build the site first"):
        requests(tmp_path)
